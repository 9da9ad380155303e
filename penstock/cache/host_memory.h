#pragma once

#include <cstddef>

#include "penstock/device/device.h"

namespace penstock {

/// Pages that the system allocates when they are first written, so that a table
/// costs memory only as it fills. Those of `grown`, which came from here and
/// which is smaller, move to their new addresses without being copied. Throws
/// Error(out_of_memory).
Buffer lazy_host_memory(std::size_t bytes, Buffer grown = {});

}  // namespace penstock
