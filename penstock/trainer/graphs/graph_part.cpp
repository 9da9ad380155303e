#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "penstock/trainer/graphs/device_graph.h"

// A recording is CUDA's stream capture, by libtorch's own at::cuda::CUDAGraph.
// What must hold:
//
// - The mode is thread-local. In the global one any thread that allocates, or
//   asks whether an event has passed, ends the capture, and the threads that
//   prepare batches do both all the time.
// - backward() queues its kernels from autograd's thread for this GPU, not from
//   the one that began the capture. They are recorded all the same: capture is
//   a state of the stream, and autograd runs each node on the stream on which
//   its forward ran. In this mode, calls such as cudaMalloc are forbidden only
//   to the thread that began the capture, and libtorch's allocator makes them
//   in the relaxed mode.
// - Forward and backward are recorded together, so that no node of autograd's
//   has another stream, which the capture would have to join.
// - Memory that is allocated for the capturing stream comes from a pool of this
//   graph, by whichever thread. Blocks that are freed during the capture are
//   used again by later kernels of this graph alone, so that a replay may write
//   them at any time.
// - cuBLAS has a workspace per thread and stream, which is allocated at its
//   first use, perhaps in this pool, and never freed: a pool goes back to the
//   device without it, and later captures on the same stream go on using it.
namespace penstock {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

std::int64_t reserved_bytes(c10::DeviceIndex device) {
  constexpr auto kAll =
      static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return allocator::getDeviceStats(device).reserved_bytes[kAll].current;
}

class CudaGraph final : public DeviceGraph {
 public:
  std::vector<at::Tensor> record(const Work& work) override {
    const c10::DeviceIndex device = c10::cuda::current_device();
    const std::int64_t before = reserved_bytes(device);
    // Its own pool, under a name that is known if the capture fails.
    pool_ = at::cuda::graph_pool_handle();
    std::vector<at::Tensor> results;
    try {
      graph_->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      results = work();
      graph_->capture_end();
    } catch (...) {
      abandon(device);
      throw;
    }
    bytes_ = std::max<std::int64_t>(0, reserved_bytes(device) - before);
    return results;
  }

  void replay() override { graph_->replay(); }
  std::int64_t pool_bytes() const override { return bytes_; }

 private:
  // The stream must leave the capture, or nothing can be queued on it any more.
  // Where the work threw by itself, the capture ends as any other. Where CUDA
  // has refused a call, capture_end() frees the stream and throws:
  // libtorch 2.11 to 2.13 then leave the allocator with a filter that refers to
  // the graph and with a pool that is never released. Both are given up here,
  // and the graph itself is never destroyed, since some version may still refer
  // to it.
  void abandon(c10::DeviceIndex device) noexcept {
    auto succeeds = [](auto&& call) {
      try {
        call();
        return true;
      } catch (const std::exception&) {  // the first error is what is told
        return false;
      }
    };
    if (succeeds([&] { graph_->capture_end(); })) return;
    succeeds([&] { allocator::endAllocateToPool(device, pool_); });
    succeeds([&] { allocator::releasePool(device, pool_); });
    static_cast<void>(graph_.release());
  }

  std::unique_ptr<at::cuda::CUDAGraph> graph_ =
      std::make_unique<at::cuda::CUDAGraph>();
  c10::MempoolId_t pool_{0, 0};
  std::int64_t bytes_ = 0;
};

std::unique_ptr<DeviceGraph> make_cuda_graph() {
  return std::make_unique<CudaGraph>();
}

}  // namespace
}  // namespace penstock

extern "C" const penstock::GraphPlugin* penstock_graph_part() {
  static constexpr penstock::GraphPlugin kPart{.make =
                                                   penstock::make_cuda_graph};
  return &kPart;
}
