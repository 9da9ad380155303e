#include "penstock/base/bytes.h"

// A copy of a block's bytes is never an accident.
penstock::Bytes passed_on(penstock::Bytes& bytes) {
#ifdef MISUSE
  return bytes;
#else
  return std::move(bytes);
#endif
}
