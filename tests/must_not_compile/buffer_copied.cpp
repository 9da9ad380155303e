#include "penstock/device/device.h"

// Memory of a device is given back once.
penstock::Buffer passed_on(penstock::Buffer& buffer) {
#ifdef MISUSE
  return buffer;
#else
  return std::move(buffer);
#endif
}
