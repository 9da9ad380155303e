#pragma once

#include <cstddef>
#include <string_view>

#include "penstock/base/aligned.h"
#include "penstock/device/device.h"

namespace penstock {

/// Never null, not even for 0 bytes. Throws shortage() in the name of
/// `device` when the machine cannot have that much.
AlignedBytes allocate_host(std::size_t bytes, std::string_view device);

/// The same as a Buffer of MemoryKind::cpu.
Buffer host_buffer(std::size_t bytes, std::string_view device);

/// How much of the host's memory this process may still allocate, and how much
/// in all; the largest number where no limit is known.
DeviceMemory host_memory();

}  // namespace penstock
