#pragma once

#include <cstddef>
#include <string_view>

namespace penstock {

/// How many bytes the character has with which a text begins that is not empty;
/// 0: these bytes are not UTF-8.
std::size_t character_at(std::string_view text);

}  // namespace penstock
