#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sources/text/plain_text.h"

namespace penstock::text {

/// How rows of text end: at the end of a line, unless that is within quotation
/// marks. They count where a cell begins.
struct RowRules {
  char delimiter = '\0';  ///< '\0': a line is a row, whatever is in it
  char quote = '\0';      ///< '\0': there are none

  /// Behind the end of the row that begins at `begin`, its "\n" included; null
  /// where it has no end before `end`.
  const char* end_of_row(const char* begin, const char* end) const;
};

/// A row without the "\n" or "\r\n" at its end.
std::string_view content_of(const char* begin, const char* end);

/// Rows that are read together.
struct TextChunk {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t line = 1;  ///< of its first byte
};

/// Where the rows of a text are. Empty lines are none.
struct TextRows {
  std::vector<TextChunk> chunks;
  std::vector<std::int64_t> ends;  ///< by chunk: the row after its last
};

/// Finds chunks of about a megabyte in one pass. Throws Error(source),
/// files.damaged, for a row that is longer than 64 MiB.
TextRows find_rows(const PlainText& text, std::int64_t offset,
                   std::int64_t line, const RowRules& rules, StopFlag stop);

/// Lines that end between two bytes.
std::int64_t lines_in(const char* begin, const char* end);

}  // namespace penstock::text
