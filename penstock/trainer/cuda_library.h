#pragma once

#include <cstdint>
#include <string>

#include "penstock/base/plugin.h"

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

/// "libtorch 2.11": the one that this code was compiled for.
const std::string& libtorch_release();

/// A plugin of the trainer's that is linked to libtorch's CUDA half. There is
/// one for each release: "nccl" is in libpenstock_nccl_2.11.so. `shown`: what
/// it is, in errors; `headers`: what it is built with, next to torch.
PluginRequest cuda_plugin(const std::string& name, const char* entry,
                          const std::string& shown, const std::string& headers);

}  // namespace penstock
