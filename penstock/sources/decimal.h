#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock {

/// A number as its shortest decimal text that reads back the same: the form in
/// which all sources give numbers as text.
template <class T>
std::string_view decimal(T number, char (&buffer)[32]) {
  char* end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  return {buffer, static_cast<std::size_t>(end - buffer)};
}

/// The same in JSON, which has no infinities and no NaN: null.
template <class T>
void append_json_number(T number, std::string& text) {
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(number)) {
      text += "null";
      return;
    }
  char buffer[32];
  text += decimal(number, buffer);
}

}  // namespace penstock
