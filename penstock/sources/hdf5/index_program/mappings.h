#pragma once

#include <hdf5.h>

#include "penstock/base/json.h"

namespace penstock::hdf5 {

/// Adds to a virtual data set, as "mappings", which of its rows are whose:
///   {"first", "rows", "file", "path", "from"}
/// rows `first` on are those of `path` in `file` from `from` on. What maps
/// anything but whole rows, in steps of one, makes it one of layout "other".
void add_mappings(hid_t properties, Json& set);

}  // namespace penstock::hdf5
