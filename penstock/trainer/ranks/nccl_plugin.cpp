#include "penstock/trainer/ranks/nccl_plugin.h"

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
  if (const CudaLibrary& cuda = cuda_library(); !cuda.why.empty())
    throw Error(ErrorKind::device, {.code = "trainer.no_cuda",
                                    .what = "cannot use NCCL",
                                    .where = libtorch_release(),
                                    .why = cuda.why,
                                    .next = "run 'penstock doctor'"});
  return load_plugin<NcclPlugin>(
      cuda_plugin("nccl", kNcclPluginEntry, "NCCL", "nvidia/nccl/include"),
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
