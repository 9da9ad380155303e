#include "penstock/sources/text/line_ends.h"

#include "penstock/base/utf8.h"

namespace penstock::text {

// The same machine as that of marks.cpp, a byte at a time. The byte order mark
// (EF BB BF) is not part of the first cell, so the cell still begins behind it.
bool QuotationMarks::outside(char next) {
  const std::size_t at = taken_++;
  if (at < kByteOrderMark.size() && next == kByteOrderMark[at]) return true;
  const bool quote = next == quote_ && quote_ != '\0';
  if (within_ == Within::quoted) {
    if (quote) within_ = Within::closing;
    return false;
  }
  if (quote && within_ != Within::plain) {
    within_ = Within::quoted;
    return false;
  }
  const bool starts = next == '\n' || next == '\r' ||
                      (delimiter_ != '\0' ? next == delimiter_
                                          : next == ',' || next == ';' ||
                                                next == '\t' || next == '|');
  within_ = starts ? Within::start : Within::plain;
  return true;
}

bool ends_with_return(QuotationMarks marks,
                      const std::function<std::span<const char>()>& more) {
  bool returned = false;
  for (;;) {
    const std::span<const char> bytes = more();
    if (bytes.empty()) return false;  // it has one line
    for (char c : bytes) {
      if (!marks.outside(c)) {
        if (returned) return true;
        continue;
      }
      if (c == '\n') return false;
      if (returned) return true;
      returned = c == '\r';
    }
  }
}

void LineEnds::take(std::span<const char> bytes) {
  made_.clear();
  for (char c : bytes) {
    const bool outside = marks_.outside(c);
    if (outside && c == '\r')
      made_ += '\n';
    else if (!outside || c != '\n' || !returned_)
      made_ += c;
    returned_ = outside && c == '\r';
  }
  sink_(made_);
}

}  // namespace penstock::text
