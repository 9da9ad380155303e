#pragma once

#include <hdf5.h>

#include "penstock/base/json.h"

namespace penstock::hdf5 {

/// A type of HDF5 as it lies in the file, in words, to depths of 16:
///   {"is": "integer", "bytes", "signed", "big"}  big: of big-endian bytes;
///                                                also bit fields
///   {"is": "float", "bytes", "big", "brain"}     brain: bfloat16, not IEEE
///   {"is": "boolean"}                            h5py's enum of FALSE and TRUE
///   {"is": "text", "bytes", "blanks"}            of a fixed size; blanks fill
///                                                it up, and not zeros
///   {"is": "texts", "bytes"}                     in the global heap
///   {"is": "list", "bytes", "of"}                in the global heap
///   {"is": "bytes", "bytes"}                     opaque
///   {"is": "array", "bytes", "dims", "of"}
///   {"is": "compound", "bytes", "members": [{"name", "at", "type"}]}
///   {"is": "other", "bytes", "what"}             that is not read
Json described_type(hid_t type, int depth = 0);

}  // namespace penstock::hdf5
