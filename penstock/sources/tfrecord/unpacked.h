#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "penstock/sources/stop.h"

namespace penstock::tfrecord {

/// True where a file begins as those that gzip or zlib compressed as a whole.
bool is_packed(std::span<const std::byte> file);

/// All bytes of such a file, up to 1 GiB. Throws Error(source): files.damaged;
/// tfrecord.packed where they are more, or this build has no zlib.
std::vector<std::byte> unpacked(std::span<const std::byte> file,
                                const std::string& path, StopFlag stop);

}  // namespace penstock::tfrecord
