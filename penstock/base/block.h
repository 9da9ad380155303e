#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/bytes.h"
#include "penstock/base/tensor.h"

namespace penstock {

/// The layouts that a column can have, as Arrow names them.
enum class ColumnKind : std::uint8_t {
  null,        ///< no values at all
  boolean,     ///< one bit per value
  number,      ///< of any width: `ColumnType::dtype`
  utf8,        ///< offsets and bytes that are UTF-8
  binary,      ///< offsets and bytes
  list,        ///< offsets into the one child
  fixed,       ///< tensors of one shape, `Column::item`, of one dtype
  dictionary,  ///< a number per row, which is a row of the one child
  uuid,        ///< 16 bytes per value
};

/// What a column holds: its layout, the width of its numbers, and what its
/// bytes mean where the layout does not say it. A value.
struct ColumnType {
  /// What is written in a column of text.
  enum class Logical : std::uint8_t { none, json };

  ColumnKind kind = ColumnKind::number;
  Dtype dtype = Dtype::float64;  ///< of numbers, and of a fixed tensor
  Logical logical = Logical::none;

  static constexpr ColumnType number(Dtype dtype) {
    return {ColumnKind::number, dtype, Logical::none};
  }
  static constexpr ColumnType tensor(Dtype dtype) {
    return {ColumnKind::fixed, dtype, Logical::none};
  }
  static const ColumnType null, boolean, int64, float64, text, json, binary,
      uuid, list;

  bool is_text() const { return kind == ColumnKind::utf8; }
  friend bool operator==(const ColumnType&, const ColumnType&) = default;
};

inline constexpr ColumnType ColumnType::null{ColumnKind::null};
inline constexpr ColumnType ColumnType::boolean{ColumnKind::boolean};
inline constexpr ColumnType ColumnType::int64 = number(Dtype::int64);
inline constexpr ColumnType ColumnType::float64 = number(Dtype::float64);
inline constexpr ColumnType ColumnType::text{ColumnKind::utf8};
inline constexpr ColumnType ColumnType::json{ColumnKind::utf8, Dtype::float64,
                                             ColumnType::Logical::json};
inline constexpr ColumnType ColumnType::binary{ColumnKind::binary};
inline constexpr ColumnType ColumnType::uuid{ColumnKind::uuid};
inline constexpr ColumnType ColumnType::list{ColumnKind::list};

/// "int64", "text", "json", "list", ...
std::string_view name_of(ColumnType type);

/// One column of a block, laid out as Arrow's C data interface has it, so that
/// what arrives in Arrow is borrowed and not copied.
///
/// `validity` has one bit per row, least significant first; empty means that
/// all rows are valid. A row's place in all buffers is `first` + row. Offsets
/// are int64, or int32 where `wide` is false. The append functions are for
/// columns that own their bytes, with `first` 0 and wide offsets.
struct Column {
  ColumnType type;
  Shape item;  ///< of a fixed tensor: the shape of one row
  std::int64_t first = 0;
  std::int64_t length = 0;
  bool wide = true;
  Bytes validity;
  Bytes offsets;
  Bytes values;
  std::vector<Column> children;  ///< one of a list or dictionary, else none

  bool valid(std::int64_t row) const;
  /// The bytes of a row of text or binary.
  std::string_view text(std::int64_t row) const;
  /// Where a row's elements begin in the child of a list; `row` may be
  /// `length`, which gives the end of the last row.
  std::int64_t offset(std::int64_t row) const;
  bool boolean(std::int64_t row) const;
  /// The 16 bytes of a uuid.
  const std::byte* uuid(std::int64_t row) const {
    return values.data() + 16 * (first + row);
  }
  template <class Number>
  Number number(std::int64_t row) const {
    return values.as<Number>()[static_cast<std::size_t>(first + row)];
  }
  double float64(std::int64_t row) const { return number<double>(row); }
  std::int64_t int64(std::int64_t row) const {
    return number<std::int64_t>(row);
  }
  /// A number of any width, or a boolean, as float64.
  double as_float64(std::int64_t row) const;
  /// An integer of any width, or a boolean; uint64 beyond 2^63 wraps.
  std::int64_t as_int64(std::int64_t row) const;

  void append_null();
  void append_text(std::string_view text);
  void append_float64(double value) { append_number(value); }
  void append_int64(std::int64_t value) { append_number(value); }
  void append_boolean(bool value);
  void append_uuid(const std::byte* sixteen);
  /// A value of the column's own width.
  template <class Number>
  void append_number(Number value) {
    values.append_value(value);
    append_valid(true);
  }
  /// Ends a row of a list: all elements that the child got since the row
  /// before.
  void append_list();
  /// A row of another column of this type; not of a dictionary.
  void append_from(const Column& from, std::int64_t row);
  /// Keeps the memory for the next rows.
  void clear();
  /// Of all buffers, those of the children too.
  std::size_t bytes() const;

 private:
  void append_valid(bool valid);
  void start_offsets();
};

/// A row that the reader could not bring into its column's type.
struct RowProblem {
  std::int64_t row;    ///< within the block
  std::size_t column;  ///< index into Block::columns
  std::string why;     ///< "holds text 'abc' where a number is expected"
};

/// A columnar batch of records. Column 0 is the key. A row with a problem has a
/// null in that column. Not thread-safe; hand it over whole.
struct Block {
  std::int64_t rows = 0;
  std::vector<Column> columns;
  std::vector<RowProblem> problems;
  /// Keeps borrowed bytes alive: a mapped file, another library's memory.
  std::shared_ptr<const void> owner;

  void clear();
  std::size_t bytes() const;
};

}  // namespace penstock
