#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/tensor.h"

namespace penstock {

/// What a caller wants a column to be turned into.
enum class ReadAs : std::uint8_t {
  key,      ///< int64, text or uuid, as the column's type says; never null
  number,   ///< of the column's own width, or a boolean; what must be converted
            ///< is float64: a timestamp becomes seconds since 1970 UTC
  integer,  ///< int64; a number with a fraction is a problem of its row
  json,     ///< the document as text
  value,    ///< as the source holds it, to be hashed: int64, float64, text...
};

/// A column that is requested of a source.
struct ColumnRequest {
  std::string column;
  ReadAs as = ReadAs::number;
  std::string setting = {};  ///< that asks, for errors: "fields.y.columns"
  /// Of a number: float32 would round a time, so none may stand in a column
  /// that declares no type.
  bool rounded = false;
  /// Of a value: it is for hashing alone. One of another type than the column's
  /// is no problem then, but a number that stands for it.
  bool hashed = false;
  /// Of a value: numbers do that say which of ColumnInfo::values each is, from
  /// 0 on.
  bool coded = false;
  /// Of a value: it is a document. A number or a list in a file without types
  /// is not a document.
  bool document = false;
  /// Above 0: the rows are windows of the column, which is one long array: so
  /// many of its elements each, every `stride` elements. The source numbers
  /// them.
  std::int64_t window = 0, stride = 0;
};

/// What the source says about a column before any row is read.
struct ColumnInfo {
  std::string name;
  std::string declared;    ///< the source's own word: "jsonb", "BOOLEAN"
  bool boolean = false;    ///< values become 0/1 and are not standardised
  bool timestamp = false;  ///< a number is its seconds since 1970 UTC
  /// Text: where a number is wanted, only an ISO-8601 time in it is one.
  bool text = false;
  bool primary_key = false;  ///< the only column of the primary key
  /// Its values name rows: what it is, "the index that pandas wrote"; empty:
  /// they tell of them.
  std::string index = {};
  /// All texts that the column can hold, in the order of classes, where the
  /// source knows them without reading a row; empty: it does not. A column of
  /// integers says by their places here which of them its rows hold.
  std::vector<std::string> values = {};
  /// Of tensors: the shape that each row has, where the source knows it without
  /// reading one; empty: it does not, or these are no tensors.
  Shape item = {};
  /// How its values are asked for where no field says it: numbers that come as
  /// text where a value is wanted, as decimals of a database do, as numbers.
  ReadAs as = ReadAs::value;
  /// Of lists: rows hold lists of lists, whose numbers come as one list.
  bool nested = false;
};

/// What lies in a source and is not one of its columns.
struct LeftOutColumn {
  std::string name;
  std::string why;   ///< "it has 99 rows, and /x has 100"
  std::string next;  ///< what can be done about it
};

/// What a source cannot tell by itself, and its settings can, to whoever takes
/// its columns unchanged.
struct Doubt {
  std::string column;  ///< that would be taken in silence; empty: all of them
  /// The type of most of its values, as `source.columns` names it; empty: none
  /// has a majority.
  std::string type = {};
  std::string why;   ///< "899 of its 900 cells are numbers, and 1 is not: ..."
  std::string next;  ///< what can be written
};

/// The columns that a source has, in its own order.
struct Schema {
  std::vector<ColumnInfo> columns;
  /// The names of the columns of the primary key, in its order; may be empty.
  std::vector<std::string> primary_key = {};
  /// What it cannot give as columns; columns among them can be read, but not
  /// beside most others.
  std::vector<LeftOutColumn> left_out = {};
  std::vector<Doubt> doubts = {};
  /// Null when there is no such column.
  const ColumnInfo* find(std::string_view name) const;
};

}  // namespace penstock
