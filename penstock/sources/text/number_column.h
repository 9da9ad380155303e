#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/sources/files/row_file.h"

namespace penstock::text {

/// Makes a column of numbers, each of which is written to its row.
class NumberColumn {
 public:
  /// Begins a column with room for so many rows.
  void start(ColumnType type, std::size_t rows) {
    column_ = {.type = type};
    missing_.clear();
    make_room(rows);
  }
  void make_room(std::size_t rows) {
    column_.values.resize(rows * size_of(column_.type.dtype));
  }
  template <class Number>
  Number* values() {
    return column_.values.mutable_data<Number>();
  }
  /// Of a row that has no number.
  void set_missing(std::size_t row) {
    const std::size_t width = size_of(column_.type.dtype);
    std::memset(values<std::byte>() + row * width, 0, width);
    missing_.push_back(row);
  }
  /// The column of the first `rows` rows.
  Column take(std::size_t rows) {
    make_room(rows);
    column_.length = static_cast<std::int64_t>(rows);
    if (!missing_.empty()) {
      Bytes& validity = column_.validity;
      validity.resize((rows + 7) / 8);
      auto* bits = validity.mutable_data<std::uint8_t>();
      std::memset(bits, 0xff, validity.size());
      for (std::size_t row : missing_)
        bits[row / 8] &= static_cast<std::uint8_t>(~(1u << row % 8));
    }
    return std::move(column_);
  }

 private:
  Column column_;
  std::vector<std::size_t> missing_;
};

/// Whether a column's values are numbers as written.
inline bool is_number(const files::FileColumn& column) {
  return column.type.kind == ColumnKind::number && !column.timestamp;
}

}  // namespace penstock::text
