#include "penstock/sources/text/row_rules.h"

#include <cstring>

namespace penstock::text {
namespace {

const char* find(const char* begin, const char* end, char c) {
  return static_cast<const char*>(
      std::memchr(begin, c, static_cast<std::size_t>(end - begin)));
}

}  // namespace

// A mark that is not at the start of a cell is text, as in 5" x 7". A mark as
// the last byte before `end` may be the first of two, so the caller must give
// the whole rest of the text or come again with more of it.
const char* RowRules::end_of_row(const char* begin, const char* end) const {
  const char* newline = find(begin, end, '\n');
  // Most rows have no quotation mark: two searches, and no look at a byte.
  if (quote == '\0' ||
      find(begin, newline == nullptr ? end : newline, quote) == nullptr)
    return newline == nullptr ? nullptr : newline + 1;
  bool at_start = true;  // of a cell
  for (const char* at = begin; at < end; ++at) {
    if (at_start && *at == quote) {
      // To the mark that closes it; two marks stand for one.
      for (++at;; at += 2) {
        at = find(at, end, quote);
        if (at == nullptr) return nullptr;
        if (at + 1 == end || at[1] != quote) break;
      }
      at_start = false;
    } else if (*at == '\n') {
      return at + 1;
    } else {
      at_start = *at == delimiter;
    }
  }
  return nullptr;
}

std::int64_t lines_in(const char* begin, const char* end) {
  std::int64_t lines = 0;  // one, mostly
  while (begin < end && (begin = find(begin, end, '\n')) != nullptr) {
    ++begin;
    ++lines;
  }
  return lines;
}

}  // namespace penstock::text
