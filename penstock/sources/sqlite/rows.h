#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/sources/sqlite/table.h"
#include "penstock/sources/sqlite/value.h"

namespace penstock::sqlite {

/// Which columns a statement selects, and how a row of its result becomes a
/// key and a row of a block. Immutable: shared by all readers of a source.
///
/// The block's types follow from what is declared, before a row is read:
/// - key: int64 for integer affinity, text for text affinity; for any other
///   the first row that is read decides (int64 if none exists). A row whose
///   key is of another type, NULL or not UTF-8 ends the reading: it could not
///   be named later. Of several columns it is a text (key_parts.h).
/// - number: also the time in an ISO-8601 text, where the column is a timestamp
///   or declares no type and the number is not rounded to float32.
/// - value: int64 for integer affinity and booleans, float64 for real
///   affinity, bytes where a BLOB is declared; all else is text, numbers in it
///   in their shortest decimal form.
class RowFormat {
 public:
  /// `keys`: whether rows need one.
  RowFormat(Connection& connection, const SourceSpec& spec, const Table& table,
            const std::vector<ColumnRequest>& requests, bool keys);

  bool has_key() const { return !key_.empty(); }
  ColumnType key_type() const {
    return key_.empty()       ? ColumnType::int64
           : key_.size() == 1 ? key_[0].type
                              : ColumnType::text;
  }
  /// By request.
  std::vector<ColumnType> types() const;
  /// Kind, file, table, key and columns, in named parts.
  Json identity() const;
  /// "SELECT ...", without FROM. The key, if there is one, comes first.
  const std::string& columns() const { return select_; }
  /// The columns of the key, as SQL and as types.
  const std::vector<std::string>& key_names() const { return key_names_; }
  ColumnType key_part(std::size_t at) const { return key_[at].type; }

  Block empty_block() const;
  bool fits(const Block& block) const;
  /// What the current row of the statement will take in a block, about.
  std::size_t bytes_of(sqlite3_stmt* row) const;
  /// Adds the current row of the statement. `number` counts the rows of the
  /// result, for messages about tables without rowid.
  void append(sqlite3_stmt* row, std::int64_t number, KeyList& keys,
              Block& block) const;

 private:
  struct SelectedColumn {
    std::string name;
    ReadAs as;
    ColumnType type;
    bool boolean;
    Times times;
    bool hashed;
    int at;  // in the result
  };
  void append_key(sqlite3_stmt* row, std::int64_t number, KeyList& keys) const;
  void check_key(const SelectedColumn& from, const Value& value,
                 std::int64_t number) const;
  bool append_value(const Value& value, const SelectedColumn& from,
                    Column& column, const char*& expected) const;

  std::vector<SelectedColumn> key_;
  std::vector<SelectedColumn> selected_;  // by request
  std::string select_;
  std::vector<std::string> key_names_;
  std::string table_;
  std::string shown_;
  std::string query_;
  std::string path_;
  std::optional<int> rowid_at_;  // in the result; none where it has no room
  bool utf8_;
};

}  // namespace penstock::sqlite
