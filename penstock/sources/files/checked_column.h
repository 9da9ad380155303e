#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "penstock/base/block.h"

namespace penstock::files {

/// Whether the offsets of texts, bytes or lists ascend and stay below `end`,
/// which is that of what they point into.
bool offsets_ascend(const Column& column, std::int64_t end);

/// Makes texts that are not UTF-8 NULL, and tells `bad` of each of them:
/// "holds text x'ff61', which is not UTF-8". The offsets must ascend.
void drop_bad_text(
    Column& column,
    const std::function<void(std::int64_t row, std::string why)>& bad);

/// Why a row of a tensor cannot be used.
inline constexpr const char* kListGap =
    "holds a list in which a value is missing";

}  // namespace penstock::files
