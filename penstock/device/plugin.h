#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/device/device.h"

namespace penstock {

/// The API of a plugin that adds a device.
struct DevicePlugin {
  /// `number`: as DeviceSpec has it. Throws Error(device) when the machine has
  /// none, or not this one.
  std::unique_ptr<Device> (*open)(std::optional<int> number,
                                  const DeviceAllocator& allocator);
};

/// The function of a plugin that returns its API.
inline constexpr const char* kDevicePluginEntry = "penstock_device_part";

/// The plugin for CUDA, from the first of these folders that has it. Throws
/// Error(device): device.not_built when none has it, device.part_broken when
/// the one found cannot be loaded.
const DevicePlugin& load_cuda_plugin(
    const std::vector<std::filesystem::path>& folders);

}  // namespace penstock
