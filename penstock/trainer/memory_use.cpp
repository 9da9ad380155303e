#include "penstock/trainer/memory_use.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <c10/core/Allocator.h>
#include <c10/core/GradMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "penstock/base/clock.h"
#include "penstock/base/tensor_limit.h"
#include "penstock/trainer/torch_memory.h"

namespace penstock {
namespace {

/// Where libtorch tells its profiler what it allocates and frees.
class Held final : public c10::MemoryReportingInfoBase {
 public:
  explicit Held(at::DeviceType device) : device_(device) {}
  std::int64_t most() const { return most_; }

  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                         c10::Device device) override {
    if (device.type() != device_) return;
    const std::int64_t now = (held_ += bytes);
    std::int64_t most = most_;
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  const at::DeviceType device_;
  // A GPU's backward() runs on a thread of its own.
  std::atomic<std::int64_t> held_{0}, most_{0};
};

}  // namespace

std::int64_t most_held(at::DeviceType device,
                       const std::function<void()>& work) {
  if (device == at::kCPU) {
    count_host_tensors();
    begin_host_tensor_peak();
    const std::int64_t before = host_tensor_bytes();
    work();
    return host_tensor_peak() - before;
  }
  auto held = std::make_shared<Held>(device);
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, held);
    work();
  }
  return held->most();
}

double measured_peak_flops(const at::TensorOptions& options) {
  const at::NoGradGuard no_graph;
  const TensorLimit none(SIZE_MAX);  // this is not the model's memory
  const std::int64_t n = options.device().is_cuda() ? 8192 : 1024;
  const at::Tensor a = at::full({n, n}, 0.5, options);
  const at::Tensor b = at::full({n, n}, 0.25, options);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const Nanoseconds begin = wall_clock().now();
    at::mm(a, b).select(0, 0).sum().item<float>();  // waits for the device
    const double took = seconds(wall_clock().now() - begin);
    const auto size = static_cast<double>(n);
    best = std::max(best, 2 * size * size * size / took);
  }
  return best;
}

}  // namespace penstock
