#if defined(__AVX2__)
#define PENSTOCK_LANES 4
#include "penstock/transforms/audio/lanes_code.h"

namespace penstock::lanes {

const Code* avx2() { return __builtin_cpu_supports("avx2") ? &kCode : nullptr; }

}  // namespace penstock::lanes
#else
#include "penstock/transforms/audio/lanes.h"

namespace penstock::lanes {

const Code* avx2() { return nullptr; }

}  // namespace penstock::lanes
#endif
