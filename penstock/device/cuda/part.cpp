#include "penstock/device/cuda/device.h"
#include "penstock/device/plugin.h"

namespace penstock {
namespace {

std::unique_ptr<Device> open_one(std::optional<int> number,
                                 const DeviceAllocator& allocator) {
  return std::make_unique<cuda::CudaDevice>(
      number ? *number : cuda::default_number(), allocator);
}

}  // namespace
}  // namespace penstock

extern "C" const penstock::DevicePlugin* penstock_device_part() {
  static constexpr penstock::DevicePlugin kPart{.open = penstock::open_one};
  return &kPart;
}
