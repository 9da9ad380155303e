#include "penstock/trainer/ranks/nccl_plugin.h"

#include <torch/headeronly/version.h>

#include <string>

#include "penstock/base/plugin.h"
#include "penstock/trainer/cuda_library.h"

namespace penstock {

// It is linked to libtorch_cuda, which cuda_library() loads from beside the
// libtorch that is loaded.
const NcclPlugin& nccl_plugin() {
  static const std::string release = std::to_string(TORCH_VERSION_MAJOR) + "." +
                                     std::to_string(TORCH_VERSION_MINOR);
  if (const CudaLibrary& cuda = cuda_library(); !cuda.why.empty())
    throw Error(ErrorKind::device, {.code = "trainer.no_cuda",
                                    .what = "cannot use NCCL",
                                    .where = "libtorch " + release,
                                    .why = cuda.why,
                                    .next = "run 'penstock doctor'"});
  return load_plugin<NcclPlugin>(
      {.library = "libpenstock_nccl_" + release + ".so",
       .entry = kNcclPluginEntry,
       .shown = "the plugin for NCCL with libtorch " + release,
       .kind = ErrorKind::device,
       .code = "trainer",
       .install = "build Penstock with a PyTorch that has its CUDA packages "
                  "(nvidia/nccl/include next to torch)"},
      plugin_folders());
}

}  // namespace penstock
