#include "penstock/trainer/torch_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "penstock/base/formatted.h"
#include "penstock/base/log.h"
#include "penstock/base/tensor_limit.h"

// In front of each block stands its size, in as many bytes as keep the block
// aligned. A DataPtr's data and context must be the same address, which some
// kernels assert: the size cannot stand in a context of its own.
namespace penstock {
namespace {

constexpr std::size_t kFront = 64;  // what libtorch aligns to
constexpr std::uint8_t kPriority = 255;

struct HostTensors {
  std::atomic<std::int64_t>& held = limited_bytes().tensors;
  std::atomic<std::int64_t> peak{0}, allocations{0}, failing{0};
};
HostTensors& host_tensors() {
  static HostTensors tensors;
  return tensors;
}

void tell_profiler(void* block, std::int64_t bytes) {
  if (c10::memoryProfilingEnabled())
    c10::reportMemoryUsageToProfiler(
        block, bytes, static_cast<std::size_t>(host_tensors().held.load()), 0,
        c10::Device(c10::DeviceType::CPU));
}

[[noreturn]] void refuse_allocation(std::size_t bytes, std::int64_t held) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "tried to allocate ", bytes,
                   " bytes; the model's tensors hold ", held,
                   " bytes, the batches ", limited_bytes().batches.load(),
                   " bytes, of a limit of ", tensor_limit().load());
  __builtin_unreachable();
}

/// Counts `bytes` more, or throws.
void take(std::size_t bytes) {
  HostTensors& all = host_tensors();
  const auto more = static_cast<std::int64_t>(bytes);
  const std::int64_t number = ++all.allocations;
  const std::int64_t now = all.held += more;
  const std::int64_t with_batches = now + limited_bytes().batches;
  if (static_cast<std::size_t>(with_batches) > tensor_limit().load() ||
      number == all.failing.load()) {
    all.held -= more;
    refuse_allocation(bytes, now - more);
  }
  std::int64_t peak = all.peak;
  while (now > peak && !all.peak.compare_exchange_weak(peak, now)) {
  }
}

void free_block(void* block) {
  if (block == nullptr) return;
  auto* front = static_cast<std::byte*>(block) - kFront;
  std::size_t bytes = 0;
  std::memcpy(&bytes, front, sizeof(bytes));
  host_tensors().held -= static_cast<std::int64_t>(bytes);
  tell_profiler(block, -static_cast<std::int64_t>(bytes));
  c10::free_cpu(front);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device host(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &free_block, host};
    take(bytes);
    std::byte* front = nullptr;
    try {
      front = static_cast<std::byte*>(c10::alloc_cpu(bytes + kFront));
    } catch (...) {
      host_tensors().held -= static_cast<std::int64_t>(bytes);
      throw;
    }
    std::memcpy(front, &bytes, sizeof(bytes));
    std::byte* block = front + kFront;
    tell_profiler(block, static_cast<std::int64_t>(bytes));
    return {block, block, &free_block, host};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

// Never destroyed: tensors may outlive everything else.
void count_host_tensors() {
  static auto* const allocator = [] {
    auto* made = new CountingAllocator;
    c10::SetCPUAllocator(made, kPriority);
    return made;
  }();
  static_cast<void>(allocator);
}

std::int64_t host_tensor_bytes() { return host_tensors().held; }
std::int64_t host_tensor_peak() { return host_tensors().peak; }
void begin_host_tensor_peak() {
  host_tensors().peak = host_tensors().held.load();
}

namespace {

/// Null for the host, and where the device was not used yet.
c10::DeviceAllocator* caching_allocator(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  auto* found =
      dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  return found != nullptr && found->initialized() ? found : nullptr;
}

std::int64_t in_all(const c10::CachingAllocator::StatArray& of,
                    std::int64_t c10::CachingAllocator::Stat::*which) {
  constexpr auto kAll =
      static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return of[kAll].*which;
}

}  // namespace

std::int64_t tensor_peak(c10::Device device) {
  if (device.is_cpu()) return host_tensor_peak();
  c10::DeviceAllocator* const allocator = caching_allocator(device);
  if (allocator == nullptr) return 0;
  return in_all(allocator->getDeviceStats(device.index()).allocated_bytes,
                &c10::CachingAllocator::Stat::peak);
}

void begin_tensor_peak(c10::Device device) {
  if (device.is_cpu()) return begin_host_tensor_peak();
  if (c10::DeviceAllocator* const allocator = caching_allocator(device))
    allocator->resetPeakStats(device.index());
}

std::int64_t empty_allocator_cache(c10::Device device) {
  c10::DeviceAllocator* const allocator = caching_allocator(device);
  if (allocator == nullptr) return 0;
  auto reserved = [&] {
    return in_all(allocator->getDeviceStats(device.index()).reserved_bytes,
                  &c10::CachingAllocator::Stat::current);
  };
  const std::int64_t before = reserved();
  allocator->emptyCache();
  return before - reserved();
}

std::string with_memory_share(const std::string& given, double share) {
  return given + (given.empty() ? "" : ",") +
         formatted("per_process_memory_fraction:%.6f", share);
}

void limit_gpu_tensors(const Device& device, c10::Device torch) {
  static std::atomic<std::size_t> in_force{SIZE_MAX};
  const std::size_t limit = gpu_tensor_limit();
  if (!torch.is_cuda() || in_force.exchange(limit) == limit) return;
  if (caching_allocator(torch) != nullptr) {
    log(LogLevel::warning,
        "device.memory_gib does not limit " + device.name() +
            ": this process has used a GPU before the limit was set");
    return;
  }
  const char* given = std::getenv("PYTORCH_ALLOC_CONF");
  if (given == nullptr) given = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  const double all = static_cast<double>(device.memory().total);
  c10::CachingAllocator::setAllocatorSettings(
      with_memory_share(given == nullptr ? "" : given,
                        std::min(1.0, static_cast<double>(limit) / all)));
}

void fail_host_allocation(std::int64_t number) {
  host_tensors().allocations = 0;
  host_tensors().failing = number;
}
std::int64_t host_allocations() { return host_tensors().allocations; }

}  // namespace penstock
