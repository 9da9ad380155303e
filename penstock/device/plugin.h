#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "penstock/device/device.h"

namespace penstock {

/// The face of a loadable part that brings a device.
struct DevicePlugin {
  static constexpr std::int64_t kVersion = 1;
  std::int64_t version;
  /// Throws Error(device) when the machine has none.
  std::unique_ptr<Device> (*open)();
};

/// The function of a part that returns its face.
inline constexpr const char* kDevicePartEntry = "penstock_device_part";

/// The part for CUDA, out of the first of these folders that has it. Throws
/// Error(device): device.not_built when none has it, device.part_broken when
/// the one that is there cannot be loaded.
const DevicePlugin& load_cuda_part(
    const std::vector<std::filesystem::path>& folders);

}  // namespace penstock
