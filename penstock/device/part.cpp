#include "penstock/device/part.h"

#include "penstock/base/part.h"

namespace penstock {

const DevicePart& load_cuda_part(
    const std::vector<std::filesystem::path>& folders) {
  try {
    return load_face<DevicePart>(
        {.library = "libpenstock_device_cuda.so",
         .entry = kDevicePartEntry,
         .shown = "the part for CUDA",
         .kind = ErrorKind::device,
         .code = "device",
         .install = "build Penstock where nvcc is, or use 'cpu', or 'sim' to "
                    "measure the input path"},
        folders);
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    if (parts.code == "device.part_missing") parts.code = "device.not_built";
    throw Error(error.kind(), std::move(parts));
  }
}

}  // namespace penstock
