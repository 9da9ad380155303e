#pragma once

#include <cstddef>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/device/device.h"

namespace penstock {

/// The Error(out_of_memory) of an allocation that a device cannot give: what
/// was asked, what is free, what there is in all.
Error shortage(std::string_view device, std::size_t asked, DeviceMemory memory);

}  // namespace penstock
