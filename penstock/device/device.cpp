#include "penstock/device/device.h"

#include "penstock/base/error.h"

namespace penstock {

Buffer Buffer::held_for(HeldFor owner) && {
  HeldIn place = HeldIn::host;
  if (kind_ == MemoryKind::cuda || kind_ == MemoryKind::sim)
    place = HeldIn::device;
  if (kind_ == MemoryKind::cuda_host) place = HeldIn::pinned;
  charge_ = MemoryCharge(owner, place, size_);
  return std::move(*this);
}

std::unique_ptr<Stream> Device::borrow_stream(void* handle) {
  if (handle == nullptr) return make_stream();
  throw Error(ErrorKind::request,
              {.code = "device.foreign_stream",
               .what = "cannot borrow a stream",
               .where = "device '" + name() + "'",
               .why = "this device cannot use the streams of another library",
               .next = "pass null, or use device 'cuda'"});
}

}  // namespace penstock
