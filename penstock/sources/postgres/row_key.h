#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/key.h"
#include "penstock/sources/key_lookup.h"
#include "penstock/sources/postgres/table.h"

namespace penstock::postgres {

/// What names a row: a column, several (as one text, key_parts.h), or, of a
/// table without a primary key, the row's place (ctid). Immutable.
class RowKey {
 public:
  /// Rows have none.
  RowKey() = default;
  /// The columns that `spec.key` names, the primary key, or the place.
  /// Error(request) if none exists of them, or it has a type that cannot
  /// be a key. `place` is for messages.
  RowKey(const SourceSpec& spec, const Table& table, const std::string& place);

  struct Part {
    std::string name;
    std::string selected;  ///< as SQL: "\"id\"", "\"day\"::text"
    Kind kind;             ///< of what is selected
    /// Where keys are read: "bigint[]", "text[]::date[]"; and the oid of the
    /// elements that are sent.
    std::string array;
    std::uint32_t oid;
  };
  const std::vector<Part>& parts() const { return parts_; }
  bool empty() const { return parts_.empty(); }
  /// It names a place in one state of the table.
  bool is_place() const {
    return parts_.size() == 1 && parts_[0].kind == Kind::ctid;
  }
  ColumnType type() const;
  /// A name, or a list of names.
  Json identity() const;

  /// Whether the fields, one for each part, are a key; else the first part that
  /// is NULL or, of text, not UTF-8.
  const Part* fault_in(std::span<const Field> fields) const;
  void append(std::span<const Field> fields, KeyList& keys) const;
  /// The group of a row's key among those that were requested.
  std::optional<std::size_t> find(std::span<const Field> fields,
                                  const KeyLookup& among) const;

  /// The SQL condition for the rows whose keys are in the arrays $1, $2, ...
  std::string condition() const;
  /// These arrays, in binary.
  std::vector<std::string> parameters(const KeyList& keys,
                                      const KeyLookup& asked) const;

 private:
  Part part_of(const ColumnInfo& column, const Table& table, bool alone,
               const std::string& place) const;
  std::string text_of(std::span<const Field> fields) const;

  std::vector<Part> parts_;
};

}  // namespace penstock::postgres
