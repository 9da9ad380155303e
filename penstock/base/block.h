#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/bytes.h"

namespace penstock {

/// What a column of a block holds, in Arrow's layout.
enum class ColumnType : std::uint8_t {
  boolean,  ///< one byte per value, 0 or 1
  int64,
  float64,  ///< also timestamps: seconds since 1970-01-01 UTC
  text,     ///< UTF-8: int64 offsets (length + 1 of them) and bytes
  json,     ///< text that holds one JSON document per row
  uuid,     ///< 16 bytes per value
  list,     ///< int64 offsets into the one child
};

std::string_view name_of(ColumnType type);

/// One column of a block: validity, offsets and values as Arrow lays them out
/// (validity: one bit per row, least significant first, empty = all valid).
struct ColumnData {
  ColumnType type = ColumnType::float64;
  std::int64_t length = 0;
  Bytes validity;
  Bytes offsets;
  Bytes values;
  std::vector<ColumnData> children;  ///< one for a list, else none

  bool valid(std::int64_t row) const;
  std::string_view text(std::int64_t row) const;
  double float64(std::int64_t row) const {
    return values.as<double>()[static_cast<std::size_t>(row)];
  }
  std::int64_t int64(std::int64_t row) const {
    return values.as<std::int64_t>()[static_cast<std::size_t>(row)];
  }

  void append_null();
  void append_text(std::string_view text);
  void append_float64(double value);
  void append_int64(std::int64_t value);
  void append_boolean(bool value);
  void append_uuid(const std::byte* sixteen);
  /// Keeps the memory for the next filling.
  void clear();

 private:
  void append_valid(bool valid);
};

/// A row that the reader could not bring into its column's type.
struct RowProblem {
  std::int64_t row;    ///< within the block
  std::size_t column;  ///< index into Block::columns
  std::string why;     ///< "holds text 'abc' where a number is expected"
};

/// A columnar piece of records. Column 0 is the key. A row with a problem has
/// a null in that column. Not thread-safe; hand it over whole.
struct Block {
  std::int64_t rows = 0;
  std::vector<ColumnData> columns;
  std::vector<RowProblem> problems;

  void clear();
  std::size_t bytes() const;
};

}  // namespace penstock
