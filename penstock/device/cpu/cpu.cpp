#include "penstock/device/cpu/cpu.h"

#include <cstring>
#include <memory>

#include "penstock/base/tensor_limit.h"
#include "penstock/device/cpu/host_bytes.h"
#include "penstock/device/shortage.h"

namespace penstock {
namespace {

class CpuStream final : public Stream {
 public:
  CpuStream() : Stream(nullptr, true) {}
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  void run(DeviceOperation operation) override { run_on_host(operation); }
  void wait(const Event& event) override { event.wait(); }
  void step(std::uint64_t) override {}
  void synchronize() override {}

 private:
  Event recorded(bool) override { return Event(wall_clock().now()); }
};

class CpuDevice final : public Device {
 public:
  CpuDevice() : Device({.name = "cpu"}) {}

  /// Counts against tensor_limit(), as a GPU's memory is shared with a model.
  Buffer allocate(std::size_t bytes) override {
    auto counted = std::make_shared<LimitedBatch>(bytes);
    if (counted->too_much())
      throw shortage("cpu", bytes, limited_memory(bytes));
    AlignedBytes data = allocate_host(bytes, "cpu");
    return Buffer(data.release(), bytes, MemoryKind::cpu,
                  [counted](std::byte* freed, std::size_t) mutable {
                    FreeAligned()(freed);
                    counted.reset();
                  });
  }
  Buffer allocate_pinned(std::size_t bytes) override {
    return host_buffer(bytes, "cpu");
  }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<CpuStream>();
  }
  DeviceMemory memory() const override { return host_memory(); }

 private:
  /// Free and total within the limit, without `asked` bytes that are counted.
  static DeviceMemory limited_memory(std::size_t asked) {
    const std::size_t limit = tensor_limit();
    const LimitedBytes& all = limited_bytes();
    const auto held =
        static_cast<std::size_t>(all.tensors + all.batches) - asked;
    return {.free = limit > held ? limit - held : 0, .total = limit};
  }
};

}  // namespace

std::unique_ptr<Device> open_cpu() { return std::make_unique<CpuDevice>(); }

}  // namespace penstock
