#pragma once

#include "penstock/device/device.h"

namespace penstock::python {

/// Torch's caching allocator, where this process has imported a torch that was
/// built for CUDA: a device then shares a GPU's memory with it. Else empty.
/// Call it with Python's lock; what it returns takes the lock itself.
DeviceAllocator torch_allocator();

}  // namespace penstock::python
