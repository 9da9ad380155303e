#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sources/memory/arrow_abi.h"

namespace penstock {

/// What a column of this schema is read as.
ArrowColumn arrow_column(const std::string& name, const ArrowSchema& schema);

/// Whether arrow_values() borrows such a column, where no struct is above it.
bool is_borrowed(const ArrowColumn& column, const ArrowSchema& schema);

/// The texts of an array's dictionary, a NULL among them as an empty one.
std::vector<std::string> dictionary_of(const ArrowSchema& schema,
                                       const ArrowArray& array);
/// Of the numbers that stand for values of a dictionary.
ColumnType index_type(const ArrowSchema& schema);

/// True where the child at `path` of a record batch, or a struct above it, has
/// nulls or does not know.
bool may_hold_nulls(const ArrowArray& batch,
                    const std::vector<std::size_t>& path);

/// `rows` rows from the place `first` of the array's buffers on. `above`: the
/// structs that it is in, the record batch first, whose nulls are its own;
/// `begin` is the row of the record batch.
Column arrow_values(const ArrowColumn& column, const ArrowSchema& schema,
                    const ArrowArray& array,
                    const std::vector<const ArrowArray*>& above,
                    std::int64_t begin, std::int64_t first, std::int64_t rows);

/// The rows among these in which a tensor lacks an element: a tensor has none
/// that is missing.
std::vector<std::int64_t> rows_with_gaps(const ArrowColumn& column,
                                         const ArrowArray& array,
                                         std::int64_t first, std::int64_t rows);

}  // namespace penstock
