#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock {

/// How rows are written as text.
enum class TextFormat : std::uint8_t {
  csv,    ///< RFC 4180, with '\n' behind each row
  tsv,    ///< the same with tabs
  jsonl,  ///< an object a line
};

/// The line of column names; empty for JSON lines.
std::string heading_text(TextFormat format,
                         const std::vector<NewColumn>& columns);
/// The rows of a block that has these columns, a line each. Floats have as many
/// digits as bring back the same bits; a NULL is an empty cell or null.
std::string rows_text(TextFormat format, const std::vector<NewColumn>& columns,
                      const Block& block);
/// Writes rows of these columns as text. `put` gets the heading, which may be
/// empty, and then the rows of each block; `finish` is called at the end.
std::unique_ptr<TableWriter> text_writer(
    TextFormat format, std::vector<NewColumn> columns,
    std::function<void(const std::string& text)> put,
    std::function<void()> finish);
/// One value as a person reads it: without quotation marks.
std::string cell_text(const Column& column, std::int64_t row);

}  // namespace penstock
