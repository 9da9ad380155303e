#include <algorithm>

#include "penstock/base/ascii.h"
#include "penstock/sources/files/where.h"

namespace penstock::files {
namespace {

std::size_t size_of_character(std::string_view text) {
  std::size_t end = 1;
  while (end < text.size() &&
         (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    ++end;
  return end;
}

}  // namespace

bool same_ascii(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return ascii_lower(c); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// A text that does not match at a % is tried again one character further on:
// only the last % seen matters. So it takes O(text * pattern) steps in the
// worst case, and not an exponential number, as trying each % recursively
// would.
bool is_like(std::string_view text, std::string_view pattern,
             std::string_view escape) {
  std::size_t at = 0, p = 0, after_any = pattern.npos, tried = 0;
  auto same = [&](std::size_t begin, std::size_t size) {
    return same_ascii(text.substr(at, size), pattern.substr(begin, size));
  };
  for (;;) {
    bool matched = false;
    if (p < pattern.size()) {
      std::string_view rest = pattern.substr(p);
      std::size_t size = size_of_character(rest);
      const bool escaped = !escape.empty() && rest.starts_with(escape);
      if (escaped) {
        std::size_t next = p + escape.size();
        // A pattern that ends with its escape matches nothing.
        size =
            next < pattern.size() ? size_of_character(pattern.substr(next)) : 0;
        matched = size > 0 && at < text.size() && same(next, size);
        if (matched) {
          p = next + size;
          at += size;
        }
      } else if (rest[0] == '%') {
        after_any = ++p;
        tried = at;
        continue;
      } else if (at < text.size() && rest[0] == '_') {
        matched = true;
        ++p;
        at += size_of_character(text.substr(at));
      } else if (at < text.size() && same(p, size)) {
        matched = true;
        p += size;
        at += size;
      }
    } else if (at == text.size()) {
      return true;
    }
    if (matched) continue;
    if (after_any == pattern.npos || tried >= text.size()) return false;
    tried += size_of_character(text.substr(tried));
    at = tried;
    p = after_any;
  }
}

}  // namespace penstock::files
