#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/files/bad_rows.h"
#include "penstock/sources/files/row_file.h"

namespace penstock::files {

/// What an array holds.
enum class ArrayItems : std::uint8_t {
  numbers,
  booleans,  ///< bytes 0 and 1
  bytes,     ///< texts of equal size, filled up with zeros
  letters,   ///< the same of UTF-32
  texts,     ///< of any length, one in each row: ArrayReader::texts
  unread,    ///< something that no tensor can hold: `why` says what
};

/// An array on disk whose first dimension numbers rows.
struct ArrayInfo {
  std::string name;      ///< of its column
  std::string declared;  ///< the format's own word: "<f4 [1000, 2]"
  ArrayItems items = ArrayItems::numbers;
  Dtype dtype = Dtype::float32;  ///< of what readers give; of texts uint8
  /// Rows first; of texts their bytes last.
  Shape shape = {};
  std::int64_t chunk_rows = 0;  ///< that are decoded together; 0: any
  bool lent = false;            ///< readers borrow a mapped file
  std::string why = {};         ///< of what is not read

  std::int64_t rows() const { return shape.empty() ? 0 : shape[0]; }
  Shape item() const { return {shape.begin() + 1, shape.end()}; }
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(elements_of(item())) * size_of(dtype);
  }
};

/// Reads rows of an array; belongs to one thread at a time.
class ArrayReader {
 public:
  virtual ~ArrayReader() = default;
  /// The rows from `begin` to `end`, in C order, of this machine's byte order;
  /// borrowed where that is possible. What is damaged are any bytes, and `bad`
  /// has those rows, counted from `begin`, each once. Throws Error(source).
  virtual Bytes rows(std::int64_t begin, std::int64_t end,
                     std::vector<BadRows>& bad) = 0;
  /// Of ArrayItems::texts the same: appends them to a column of text.
  virtual void texts(std::int64_t /*begin*/, std::int64_t /*end*/,
                     Column& /*to*/, std::vector<BadRows>& /*bad*/) {}
};

/// An array of a file. Thread-safe.
class RowArray {
 public:
  explicit RowArray(ArrayInfo info) : info_(std::move(info)) {}
  virtual ~RowArray() = default;
  const ArrayInfo& info() const { return info_; }
  virtual std::unique_ptr<ArrayReader> open() const = 0;

 protected:
  ArrayInfo info_;
};

/// Arrays side by side as a file of rows: a column each. An array of one
/// dimension is a column of numbers, booleans or texts, others are tensors;
/// windows are tensors [length, ...]. Those that are read must have equally
/// many rows: Error(source), arrays.lengths. `place` is for messages.
std::shared_ptr<const RowFile> make_array_file(
    std::string place, std::vector<std::shared_ptr<const RowArray>> arrays);

/// A row file without rows, of the columns of another: a file that stands in
/// the list so that its changes are seen.
std::shared_ptr<const RowFile> make_empty_file(const RowFile& like);

/// Error(source), arrays.type: what an array holds is not read.
[[noreturn]] void refuse_array(const std::string& place,
                               const std::string& name, std::string why);

}  // namespace penstock::files
