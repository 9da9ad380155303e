#pragma once

#include <memory>

#include "penstock/device/device.h"

namespace penstock {

/// The host as a device: memory is ordinary memory, up to tensor_limit(); every
/// call has done its work when it returns, events have passed when they are
/// recorded, and steps take no time. No call of a stream allocates.
std::unique_ptr<Device> open_cpu();

}  // namespace penstock
