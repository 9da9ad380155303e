#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sources/text/plain_text.h"
#include "penstock/sources/text/row_rules.h"

namespace penstock::text {

/// What to do about a quotation mark that is never closed.
inline constexpr char kCloseMark[] =
    "close it, or set \"quote\": \"none\" if such marks are text";

/// What the settings say; '\0': nothing, or that there are no marks.
char quote_of(const FileSettings& settings);
char delimiter_of(const FileSettings& settings);
char thousands_of(const FileSettings& settings);

/// How a CSV file begins.
struct CsvHeader {
  RowRules rules;
  std::vector<std::string> names;  ///< of the columns, in their order
  std::int64_t first_row = 0;      ///< the offset of what follows the header
  std::int64_t first_line = 1;     ///< the line that is there
  bool first_unnamed = false;      ///< the first column has no name there
  /// It may be a row like those behind it: each name is a number, or stands in
  /// its column again. Numbers that count up are names, as pandas gives them.
  bool like_row = false;
};

/// Reads the names of the columns, and finds the delimiter where the settings
/// do not have it. Excel's first line "sep=;" names one. A header that has one
/// name less than the rows have cells, as R writes it beside the names of rows,
/// lacks that of the first column. Throws Error(source): files.damaged,
/// files.header, files.encoding.
CsvHeader read_csv_header(const PlainText& text, const FileSettings& settings);

}  // namespace penstock::text
