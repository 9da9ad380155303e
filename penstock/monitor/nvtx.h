#pragma once

#include <memory>
#include <string>

#include "penstock/exec/exec.h"

namespace penstock {

/// The two calls of NVTX that we use, by the names that libnvToolsExt gives
/// them ("NVIDIA Tools Extension" 1 to 3). Null where there is no such library.
struct NvtxCalls {
  int (*push)(const char* name) = nullptr;
  int (*pop)() = nullptr;
};

/// The library, by its name or at its path; all null where it cannot be opened.
NvtxCalls open_nvtx(const std::string& library);

/// Names the work on our stages to NVIDIA's tools, from here on until the
/// returned object is gone; null where the calls are. Only work on threads:
/// the tools see the device themselves.
std::shared_ptr<void> tell_nvtx(const NvtxCalls& calls);

/// The same for a program that Nsight runs, which reports it in the environment
/// (NVTX_INJECTION64_PATH), or where PENSTOCK_NVTX names a library. Null for
/// any other: then nothing is opened.
std::shared_ptr<void> tell_nvtx_where_asked();

}  // namespace penstock
