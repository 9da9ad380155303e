#pragma once

#include <c10/util/intrusive_ptr.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "penstock/session/session.h"

namespace penstock {

/// What adds numbers between GPUs: a plugin of its own, because it is linked to
/// libtorch_cuda, and is built only where the headers of CUDA and NCCL are. Its
/// name has the minor version of torch, like the trainer's.
struct NcclPlugin {
  /// Joins all ranks, each with the GPU of the tensors that it will pass. An
  /// operation that does not end within `seconds` throws.
  c10::intrusive_ptr<c10d::Backend> (*open)(
      const c10::intrusive_ptr<c10d::Store>& store, int rank, int world,
      int seconds);
};

/// The one symbol that is looked up in it.
inline constexpr const char* kNcclPluginEntry = "penstock_nccl_part";

/// The plugin for the torch that is loaded. Throws Error(device).
const NcclPlugin& nccl_plugin();

/// Joins all ranks of `place`, over the network interface that leads to rank 0
/// unless NCCL_SOCKET_IFNAME names one. `store` is that of all ranks.
c10::intrusive_ptr<c10d::Backend> open_nccl(
    const NcclPlugin& plugin, const c10::intrusive_ptr<c10d::Store>& store,
    const RankPlace& place);

}  // namespace penstock
