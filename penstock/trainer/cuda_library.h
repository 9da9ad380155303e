#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// libtorch's CUDA half, which is opened at run time so that one binary serves
/// machines with and without it.
struct CudaLibrary {
  int devices = 0;  ///< that can be used
  std::string why;  ///< why there are no devices
};

/// Opens it, the first time. Must come before any other CUDA query of libtorch:
/// a query that comes first is answered "no" for good.
const CudaLibrary& cuda_library();

}  // namespace penstock
