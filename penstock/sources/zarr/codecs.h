#pragma once

#include <span>
#include <string>
#include <vector>

#include "penstock/sources/zarr/metadata.h"

namespace penstock::zarr {

/// Undoes codecs, one after the other. What they make has `bytes` bytes at the
/// end, and never more than a little above that in between. Throws
/// Error(source): files.damaged with `place`; arrays.type for one that this
/// build has no library for.
std::vector<std::byte> unpack(std::vector<std::byte> packed,
                              const std::vector<Codec>& codecs,
                              std::size_t bytes, const std::string& place);

/// The same of what has any number of bytes, up to 256 MiB.
std::vector<std::byte> unpack_any(std::vector<std::byte> packed,
                                  const std::vector<Codec>& codecs,
                                  const std::string& place);

}  // namespace penstock::zarr
