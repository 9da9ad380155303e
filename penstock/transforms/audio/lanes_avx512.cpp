#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define PENSTOCK_LANES 8
#include "penstock/transforms/audio/lanes_code.h"

namespace penstock::lanes {

const Code* avx512() {
  return __builtin_cpu_supports("avx512f") &&
                 __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl")
             ? &kCode
             : nullptr;
}

}  // namespace penstock::lanes
#else
#include "penstock/transforms/audio/lanes.h"

namespace penstock::lanes {

const Code* avx512() { return nullptr; }

}  // namespace penstock::lanes
#endif
