#include "penstock/trainer/ranks/nccl_plugin.h"

#include <torch/headeronly/version.h>

#include <cstdlib>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "penstock/base/plugin.h"
#include "penstock/trainer/cuda_library.h"
#include "penstock/trainer/ranks/network_interface.h"

namespace penstock {
namespace {

// All ranks have just voted, so that none is far behind.
constexpr int kLongestOperation = 120;  // seconds

}  // namespace

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

c10::intrusive_ptr<c10d::Backend> open_nccl(
    const NcclPlugin& plugin, const c10::intrusive_ptr<c10d::Store>& store,
    const RankPlace& place) {
  const std::string interface = interface_to(place.master, place.port);
  if (!interface.empty()) ::setenv("NCCL_SOCKET_IFNAME", interface.c_str(), 0);
  return plugin.open(c10::make_intrusive<c10d::PrefixStore>("nccl", store),
                     place.rank.rank, place.rank.world, kLongestOperation);
}

}  // namespace penstock
