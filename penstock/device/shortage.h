#pragma once

#include <cstddef>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/device/device.h"

namespace penstock {

/// The Error(out_of_memory) of a failed allocation: what was requested, what is
/// free, and the total.
Error shortage(std::string_view device, std::size_t asked, DeviceMemory memory);

}  // namespace penstock
