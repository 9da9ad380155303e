#pragma once

#include <string>

#include "penstock/sources/hdf5/index.h"

namespace penstock::hdf5 {

/// A group that holds the index that PyTables keeps of a table: it has rows of
/// its own, which are not those of the table.
bool is_index_of_pytables(const Json& attributes);

/// Attributes by which PyTables and pandas describe a table, an array or a
/// group; `all` are those beside it.
bool is_of_pytables(const std::string& name, const Json& all);

/// The type of a table, in which columns that pandas stored side by side in a
/// block, of which "values_block_0_kind" tells the names, are members of their
/// own. The same type for other data sets.
ValueType with_columns_of_pandas(const DataSet& set);

}  // namespace penstock::hdf5
