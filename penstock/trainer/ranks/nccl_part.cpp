#include <chrono>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "penstock/trainer/ranks/nccl_plugin.h"

namespace penstock {
namespace {

// By default a watchdog of torch ends the process when an operation takes too
// long. With a blocking wait the operation throws instead, and the rank that is
// lost can be named.
c10::intrusive_ptr<c10d::Backend> open_nccl(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int world,
    int seconds) {
  constexpr int kKeep = 0;  // what the user has set
  ::setenv("TORCH_NCCL_BLOCKING_WAIT", "1", kKeep);
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", kKeep);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::seconds(seconds);
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, world,
                                                     std::move(options));
}

}  // namespace
}  // namespace penstock

extern "C" const penstock::NcclPlugin* penstock_nccl_part() {
  static constexpr penstock::NcclPlugin kPart{.open = penstock::open_nccl};
  return &kPart;
}
