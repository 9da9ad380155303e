#pragma once

#include <cstddef>
#include <string>

namespace penstock {

/// Throws the Error(request) of a source that cannot be mixed with others.
[[noreturn]] void refuse_source(std::string code, std::size_t source,
                                std::string why, std::string next);

}  // namespace penstock
