#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/sources/blocks.h"
#include "penstock/sources/postgres/row_key.h"
#include "penstock/sources/postgres/table.h"

namespace penstock::postgres {

/// Which columns a statement selects, and how a row of its binary result
/// becomes a row of a block. Immutable: shared by all readers of a source.
///
/// The types depend only on those of the columns. What can be seen to be wrong
/// before a row is read (a uuid as a number) is an Error(request) that says
/// which cast to write; where a value decides (text as a time), it is a problem
/// of its row.
class RowFormat {
 public:
  /// `place` is for messages: "measurements in postgresql://db.lab:5432/lab".
  /// `keys`: whether rows need one.
  RowFormat(const SourceSpec& spec, const Table& table, std::string place,
            const std::vector<ColumnRequest>& requests, bool keys);

  const RowKey& key() const { return key_; }
  /// By request.
  std::vector<ColumnType> types() const;
  /// By request, of the blocks that `append` writes.
  std::vector<BlockColumn> columns() const;
  /// Kind, place, table, key and columns, in named parts, without secrets.
  Json identity() const;
  /// Of a row of a result.
  std::size_t fields() const {
    return std::max<std::size_t>(1, selected_.size() + key_.parts().size());
  }
  /// "SELECT ... FROM ...", where the key, if there is one, comes first.
  const std::string& select() const { return select_; }
  const std::string& place() const { return place_; }

  /// Throws `postgres.changed` unless `result`, of a statement that begins with
  /// `select()`, has the types that the table had when it was opened. Bytes of
  /// another type are never taken for a value.
  void check_types(const Result& result) const;

  Block empty_block() const;
  bool fits(const Block& block) const;
  /// What a row will take in a block, about.
  std::size_t bytes_of(std::span<const Field> row) const;
  /// Adds a row. `number` counts the rows of the result from 1 and `range`
  /// says which result, for messages about a row whose key is NULL.
  void append(std::span<const Field> row, std::int64_t number,
              const std::string& range, KeyList& keys, Block& block) const;
  /// Throws when a part of a row's key is NULL or no value of its type.
  void check_key(std::span<const Field> row, std::int64_t number,
                 const std::string& range) const;

 private:
  struct SelectedColumn {
    std::string name;
    ReadAs as;
    Kind kind;
    ColumnType type;
    Dtype numbers;      // of a list
    std::uint32_t oid;  // of the column
  };
  SelectedColumn select_column(const ColumnInfo& column, const Table& table,
                               const ColumnRequest& request);
  bool append(const SelectedColumn& from, const Field& field, Column& column,
              const char*& expected) const;
  [[noreturn]] void refuse_bytes(const std::string& column,
                                 const Field& field) const;

  RowKey key_;
  std::vector<SelectedColumn> selected_;  // by request
  std::string select_;
  std::string table_;
  std::string shown_;
  std::string query_;
  std::string place_;
};

}  // namespace penstock::postgres
