#include "penstock/device/plugin.h"

#include "penstock/base/plugin.h"

namespace penstock {

const DevicePlugin& load_cuda_plugin(
    const std::vector<std::filesystem::path>& folders) {
  try {
    return load_plugin<DevicePlugin>(
        {.library = "libpenstock_device_cuda.so",
         .entry = kDevicePluginEntry,
         .shown = "the plugin for CUDA",
         .kind = ErrorKind::device,
         .code = "device",
         .install =
             "build Penstock with nvcc installed, or use 'cpu', or 'sim' to "
             "measure the input path"},
        folders);
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    if (parts.code != "device.part_missing") throw;
    std::error_code unknown;
    // A plugin that was found is named with its folder.
    if (std::filesystem::path file = parts.where;
        file.has_parent_path() && std::filesystem::exists(file, unknown)) {
      parts.code = "device.part_broken";
      parts.next =
          "install the missing library, or reinstall the program and its "
          "plugins, or use 'cpu'";
    } else {
      parts.code = "device.not_built";
    }
    throw Error(error.kind(), std::move(parts));
  }
}

}  // namespace penstock
