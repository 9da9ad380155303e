#include "penstock/device/part.h"

#include "penstock/device/cuda/device.h"

namespace penstock {
namespace {

std::unique_ptr<Device> open_first() {
  return std::make_unique<cuda::CudaDevice>(0);
}

}  // namespace
}  // namespace penstock

extern "C" const penstock::DevicePart* penstock_device_part() {
  static constexpr penstock::DevicePart kPart{
      .version = penstock::DevicePart::kVersion, .open = penstock::open_first};
  return &kPart;
}
