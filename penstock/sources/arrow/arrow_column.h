#pragma once

#include <arrow/type_fwd.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/files/row_file.h"

namespace penstock::arrow_files {

/// A column of a file: a leaf of its schema, or something nested that stays
/// whole.
struct ArrowColumn {
  files::FileColumn column;
  std::vector<std::string> names;  ///< of fields, from the schema's own down
  bool ordered = false;  ///< its dictionary may say the order of its classes
};

/// Of numbers that we have as they are; false for other types.
bool dtype_of(const arrow::DataType& type, Dtype& dtype);

/// The columns of a schema. Structs are their members, "a.b"; lists of numbers
/// are lists; what is nested in another way becomes JSON text. Columns of types
/// that cannot be read, and those that share a name, are added to `left_out`.
std::vector<ArrowColumn> columns_of(const arrow::Schema& schema,
                                    const files::DataFile& file,
                                    std::vector<LeftOutColumn>& left_out);

/// The array of a column in a batch that holds it, perhaps with others: that of
/// a struct's member is NULL where the struct is.
std::shared_ptr<arrow::Array> array_of(const arrow::RecordBatch& batch,
                                       const std::vector<std::string>& names,
                                       const files::DataFile& file,
                                       const std::string& where);

/// An array as a column, which borrows its buffers where both have one layout.
/// Texts that are not UTF-8 are NULL and problems of column `at`. Throws
/// Error(source), files.damaged, for buffers that do not fit together.
Column column_from(const std::shared_ptr<arrow::Array>& array,
                   const files::FileColumn& as, std::size_t at,
                   std::vector<RowProblem>& problems,
                   const files::DataFile& file, const std::string& where);

/// A value of any type as JSON text, appended.
void append_json(const arrow::Array& array, std::int64_t row,
                 std::string& text);

}  // namespace penstock::arrow_files
