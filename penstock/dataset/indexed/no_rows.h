#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// Throws Error(source), code source.empty, of a source that has no row, or
/// none but those that were left out.
[[noreturn]] void refuse_no_rows(const std::string& source,
                                 std::int64_t too_short = 0,
                                 std::int64_t bad_rows = 0);

}  // namespace penstock
