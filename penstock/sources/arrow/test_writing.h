#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Writes files for tests with Arrow itself.
namespace penstock::arrow_files {

/// How a table is written.
struct Written {
  enum class As : unsigned char { parquet, file, stream };
  As as = As::parquet;
  std::int64_t chunk = 1000;  ///< rows of a row group or record batch
  bool compressed = false;
};

/// The bytes of a file that holds `table`.
std::string written(const std::shared_ptr<arrow::Table>& table, Written how);

/// A table of one chunk.
template <class... Columns>
std::shared_ptr<arrow::Table> table_of(
    std::vector<std::shared_ptr<arrow::Field>> fields, Columns... columns) {
  return arrow::Table::Make(arrow::schema(std::move(fields)), {columns...});
}

/// An array from JSON: "[1, null, 3]".
std::shared_ptr<arrow::Array> array_from(
    const std::shared_ptr<arrow::DataType>& type, const std::string& json);

}  // namespace penstock::arrow_files
