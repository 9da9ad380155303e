#pragma once

#include <hdf5.h>

#include <string>

#include "penstock/base/json.h"

namespace penstock::hdf5 {

/// What an index says of a data set:
///   {"path", "type", "dims", "fill": hexadecimal, "layout", "attributes"} and
///   contiguous  "offset", "stored": bytes, 0 where it was never written
///   chunked     "chunk": dims, "filters": [{"id", "name", "values"}]
///   compact     "data": hexadecimal
///   virtual     "mappings": [{"first", "rows", "file", "path", "from"}]
///   other       "why"
Json described_data_set(hid_t set, const std::string& path);

/// Values of attributes by name: a number, a text, a list of numbers, or
/// {"why"} of what is not read.
Json described_attributes(hid_t object);

}  // namespace penstock::hdf5
