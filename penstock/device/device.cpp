#include "penstock/device/device.h"

#include "penstock/base/error.h"

namespace penstock {

std::unique_ptr<Stream> Device::borrow_stream(void* handle) {
  if (handle == nullptr) return make_stream();
  throw Error(ErrorKind::request,
              {.code = "device.foreign_stream",
               .what = "cannot borrow a stream",
               .where = "device '" + name() + "'",
               .why = "it cannot use the streams of another library",
               .next = "pass null, or use device 'cuda'"});
}

}  // namespace penstock
