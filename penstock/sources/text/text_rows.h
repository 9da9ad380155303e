#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sources/text/plain_text.h"
#include "penstock/sources/text/row_rules.h"

namespace penstock::text {

/// Rows that are read together.
struct TextChunk {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t line = 1;  ///< of its first byte
};

/// Where the rows of a text are. Empty lines are not rows.
struct TextRows {
  std::vector<TextChunk> chunks;
  std::vector<std::int64_t> ends;  ///< by chunk: the row after its last
};

/// Finds chunks of about a megabyte in one pass. Throws Error(source),
/// files.damaged, for a row that is longer than 64 MiB.
TextRows find_rows(const PlainText& text, std::int64_t offset,
                   std::int64_t line, const RowRules& rules, StopFlag stop);

/// The line in which a row begins.
std::int64_t line_of_row(const PlainText& text, const TextRows& rows,
                         const RowRules& rules, std::int64_t row);

}  // namespace penstock::text
