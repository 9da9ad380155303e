#pragma once

#include <string>

#include "penstock/sources/hdf5/row_column.h"

namespace penstock::hdf5 {

files::FileColumn file_column(const ValuePlan& plan);

/// An attribute that is a number, a text or a list of numbers: the same value
/// in each row.
RowColumn constant(const std::string& name, const Json& value);
/// Of an attribute: it is an integer, or a list of such.
bool is_whole(const Json& value);

/// Names of attributes that say how a library reads a data set, not what it is.
/// `all` are those beside it: a user's own may be called CLASS, too.
bool is_technical(const std::string& name, const Json& all);

/// An attribute that is not a column.
LeftOutColumn not_read(const std::string& name, std::string why);

/// Adds a column for each attribute, named `prefix` + "@" + its name.
void add_constants(const Json* attributes, const std::string& prefix,
                   RowColumns& to);

}  // namespace penstock::hdf5
