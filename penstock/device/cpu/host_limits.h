#pragma once

#include <filesystem>

#include "penstock/device/device.h"

namespace penstock {

/// The memory that this process may use: the machine's, or less where a
/// cgroup (v1 or v2, its own or one above it) allows less. File cache that
/// the kernel would give up counts as free. `root` is "/" except in tests.
/// Where nothing can be read no limit is known, and both are the largest
/// number.
DeviceMemory host_limits(const std::filesystem::path& root = "/");

}  // namespace penstock
