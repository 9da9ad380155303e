#pragma once

#include <optional>
#include <string_view>

#include "penstock/transforms/json_set/elements.h"

namespace penstock {

/// How deep lists and objects may lie in each other.
inline constexpr int kDeepest = 64;

/// Finds the first byte at which a text stops being one JSON document (RFC
/// 8259, UTF-8, at most kDeepest levels); nullopt when all of it is JSON.
/// Careful, not fast: it is called for rows that are odd or wrong.
std::optional<JsonFault> fault_of_json(std::string_view text);

}  // namespace penstock
