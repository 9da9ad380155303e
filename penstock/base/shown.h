#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace penstock {

// Small texts for people. Each looks the same wherever it is shown.

/// "71.2 %" of a share of 0.712, with so many digits behind the point.
std::string shown_percent(double share, int digits);

/// "336,776".
std::string shown_count(std::int64_t number);
/// "1 row", "336,776 rows".
std::string counted(std::int64_t number, std::string_view noun);

/// "a, b, c": what `text_of` gives of each item.
template <class Items, class TextOf = std::identity>
std::string listed(const Items& items, TextOf text_of = {}) {
  std::string all;
  bool first = true;
  for (const auto& item : items) {
    if (!first) all += ", ";
    first = false;
    all += std::invoke(text_of, item);
  }
  return all;
}
/// "'a', 'b', 'c'".
template <class Items, class TextOf = std::identity>
std::string quoted_list(const Items& items, TextOf text_of = {}) {
  return listed(items, [&](const auto& item) {
    return "'" + std::string(std::invoke(text_of, item)) + "'";
  });
}

/// Characters of a text in UTF-8: the places that it takes in a terminal.
std::size_t places_of(std::string_view text);
/// The words of `text` on lines of at most `columns` places, each ended by a
/// newline. The first line begins with `begin`, the others with `indent`, which
/// take equally many places. A longer word has a line for itself.
std::string wrapped(std::string_view text, std::size_t columns,
                    const std::string& begin, const std::string& indent);

}  // namespace penstock
