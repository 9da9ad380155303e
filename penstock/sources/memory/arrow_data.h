#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/sources/memory/arrow_abi.h"

namespace penstock {

/// Of a column that is not readable(), and is of this type in the words of the
/// library that made it: why.
LeftOutColumn left_out_column(const ArrowColumn& column,
                              const std::string& type);

/// A table in memory that another library has made, in record batches whose
/// bytes are borrowed. Columns of structs are named PARENT.CHILD. Immutable, so
/// thread-safe.
class ArrowTable {
 public:
  /// The classes that columns are declared to have, by name, in their order.
  using Classes = std::map<std::string, std::vector<std::string>>;

  /// Takes all record batches of a stream, which it releases, whatever happens.
  /// `classes` are ColumnInfo::values of columns of integers, and of those
  /// whose dictionaries hold the same texts. Throws Error(source), code
  /// source.stream, with what the other library says.
  static std::shared_ptr<const ArrowTable> read(ArrowArrayStream& stream,
                                                const Classes& classes = {});
  ~ArrowTable();
  ArrowTable(const ArrowTable&) = delete;
  ArrowTable& operator=(const ArrowTable&) = delete;

  const std::vector<ArrowColumn>& columns() const { return columns_; }
  std::int64_t rows() const { return ends_.empty() ? 0 : ends_.back(); }
  /// The position after the last row of each record batch; none is empty.
  const std::vector<std::int64_t>& ends() const { return ends_; }
  /// Rows [first, first + rows) of a column of a record batch, of
  /// ArrowColumn::type: borrowed where the layout is that of a Column, else
  /// converted. Borrows from this table.
  Column column(std::size_t batch, std::size_t column, std::int64_t first,
                std::int64_t rows) const;
  /// All of them.
  Column column(std::size_t batch, std::size_t column) const;
  /// Whether column() borrows it.
  bool borrows(std::size_t column) const;
  /// The type of the numbers that say which of ColumnInfo::values a row of the
  /// column holds; nullopt: it has no such.
  std::optional<ColumnType> code_type(std::size_t column) const;
  /// As column(), these numbers, borrowed. What they are is not checked.
  Column codes(std::size_t batch, std::size_t column, std::int64_t first,
               std::int64_t rows) const;
  /// The rows among these whose tensor lacks an element.
  std::vector<std::int64_t> rows_with_gaps(std::size_t batch,
                                           std::size_t column,
                                           std::int64_t first,
                                           std::int64_t rows) const;

 private:
  /// Where the rows of a column lie in a record batch.
  struct Place {
    const ArrowSchema* schema;
    const ArrowArray* array;
    std::vector<const ArrowArray*> above;  // the structs that it is in
    std::int64_t first;
  };
  ArrowTable() = default;
  void find_ambiguous();
  void find_index();
  Place place(std::size_t batch, std::size_t column, std::int64_t first) const;
  const ArrowSchema& schema_of(std::size_t column) const;
  void declare(std::size_t column, const std::vector<std::string>& classes);
  void add_columns(const ArrowSchema& schema, const std::string& prefix,
                   const std::vector<std::size_t>& path);

  ArrowSchema schema_ = {};
  std::vector<ArrowArray> batches_;
  std::vector<std::int64_t> ends_;
  std::vector<ArrowColumn> columns_;
  std::vector<std::vector<std::size_t>> paths_;  // by column: children
};

}  // namespace penstock
