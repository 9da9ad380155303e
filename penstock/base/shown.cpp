#include "penstock/base/shown.h"

#include <algorithm>

#include "penstock/base/formatted.h"

namespace penstock {

std::string shown_percent(double share, int digits) {
  return formatted("%.*f %%", digits, 100 * share);
}

std::string shown_count(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > first; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string counted(std::int64_t number, std::string_view noun) {
  return shown_count(number) + " " + std::string(noun) +
         (number == 1 ? "" : "s");
}

std::size_t places_of(std::string_view text) {
  return static_cast<std::size_t>(  // bytes that begin a character
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string wrapped(std::string_view text, std::size_t columns,
                    const std::string& begin, const std::string& indent) {
  std::string lines, line = begin;
  bool begun = false;  // the line has a word
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (begun && places_of(line) + 1 + places_of(word) > columns) {
      lines += line + "\n";
      line = indent;
      begun = false;
    }
    line += (begun ? " " : "") + word;
    begun = true;
  }
  return lines + line + "\n";
}

}  // namespace penstock
