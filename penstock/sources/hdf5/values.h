#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/columns.h"
#include "penstock/sources/files/packed_numbers.h"
#include "penstock/sources/hdf5/global_heap.h"

namespace penstock::hdf5 {

/// Values of a data set that make a column: all of an element, or a member of a
/// compound one.
struct ValuePlan {
  std::string name;     ///< "/x", "/x.member"
  std::int64_t at = 0;  ///< in an element, in bytes
  ValueType type;       ///< never a compound, an array or other
  ColumnType column;    ///< number, boolean, text, binary, list or fixed
  std::vector<std::int64_t> item = {};  ///< of fixed: a row's shape
  Dtype numbers = Dtype::float64;       ///< of a list
  files::PackedNumbers packed = {};     ///< by attributes of the data set
  std::string declared;                 ///< "float32[128, 64]"
};

/// The columns that elements of a type make; `item` is the shape of a row, and
/// `scalar` says that a row is one element.
void plan_values(const std::string& name, const ValueType& type,
                 const std::vector<std::int64_t>& item,
                 std::vector<ValuePlan>& plans,
                 std::vector<LeftOutColumn>& refused);

/// A column of `rows` rows from elements of `stride` bytes, as they lie in the
/// file. Numbers are lent where they can be; those of 16 bits stay so in
/// tensors and lists, and are float32 where a row is one of them. Rows whose
/// values cannot be read are null, with a problem of column `at`.
Column column_of(const ValuePlan& plan, RawRows&& raw, std::int64_t rows,
                 std::int64_t stride, const IndexedFile& file, GlobalHeap& heap,
                 std::size_t at, std::vector<RowProblem>& problems);

/// Applies the attributes of a data set (see files::packed_by) to the plans of
/// its own numbers; those of members are left alone.
void unpack_by_attributes(const DataSet& set, const std::string& place,
                          std::vector<ValuePlan>& plans);

/// Numbers of a plan's type one after the other, unpacked.
Column numbers_of(const ValuePlan& plan, RawRows&& raw, std::int64_t count);
/// Numbers of elements one after the other, as a child of a list has them.
Column numbers_of(const ValueType& type, RawRows&& raw, std::int64_t count);
/// The dtype that such numbers have.
Dtype dtype_of(const ValueType& type);

}  // namespace penstock::hdf5
