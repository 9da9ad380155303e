#pragma once

#include <memory>

#include "penstock/sources/files/array_file.h"
#include "penstock/sources/zarr/metadata.h"

namespace penstock::zarr {

/// The rows of an array, whose chunks are read and unpacked when they are
/// needed; the last ones are kept.
std::shared_ptr<const files::RowArray> make_chunked_array(ZarrArray array);

}  // namespace penstock::zarr
