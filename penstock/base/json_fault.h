#pragma once

#include <cstddef>
#include <string_view>

namespace penstock {

/// Where the fault begins, given the byte at which a parser gave up on a JSON
/// text: the start of the word that is wrong or in the wrong place, or of a bad
/// character within a text. At the end of the text, that end.
std::size_t start_of_fault(std::string_view json, std::size_t byte);

}  // namespace penstock
