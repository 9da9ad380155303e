#pragma once

#include <charconv>
#include <string_view>

namespace penstock {

/// A number as its shortest decimal text that reads back the same: the form in
/// which all sources give numbers as text.
template <class T>
std::string_view decimal(T number, char (&buffer)[32]) {
  char* end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  return {buffer, static_cast<std::size_t>(end - buffer)};
}

}  // namespace penstock
