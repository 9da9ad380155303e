#pragma once

#include <span>

#include "penstock/sources/text/decoded.h"

namespace penstock::text {

/// Tells the bytes of text that stand in quotation marks. One thread's.
///
/// A mark opens where a cell begins. The delimiter need not be known: a cell
/// begins after any byte that is mostly one.
class QuotationMarks {
 public:
  /// `quote`, `delimiter`: '\0': none, or it is not known.
  QuotationMarks(char quote, char delimiter)
      : quote_(quote), delimiter_(delimiter) {}
  /// Takes the next byte. False: it is in quotation marks, or is one.
  bool outside(char next);

 private:
  enum class Within : unsigned char { start, plain, quoted, closing };

  const char quote_, delimiter_;
  Within within_ = Within::start;
  std::size_t taken_ = 0;
};

/// Whether the first line of a text ends with "\r" and no "\n" behind it, as
/// old programs for the Mac write them. `more` gives the next bytes of the
/// text, none at its end.
bool ends_with_return(QuotationMarks marks,
                      const std::function<std::span<const char>()>& more);

/// Hands on a text with a "\n" at the end of each line, whether it has "\r",
/// "\r\n" or "\n" there. Within quotation marks nothing changes.
class LineEnds {
 public:
  LineEnds(QuotationMarks marks, ByteSink sink)
      : marks_(marks), sink_(std::move(sink)) {}
  void take(std::span<const char> bytes);

 private:
  QuotationMarks marks_;
  const ByteSink sink_;
  bool returned_ = false;  // the last byte was a "\r"
  std::string made_;
};

}  // namespace penstock::text
