#include "penstock/device/cpu/cpu.h"

#include <cstring>

#include "penstock/device/cpu/host_bytes.h"

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

  Buffer allocate(std::size_t bytes) override {
    return host_buffer(bytes, "cpu");
  }
  Buffer allocate_pinned(std::size_t bytes) override { return allocate(bytes); }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<CpuStream>();
  }
  DeviceMemory memory() const override { return host_memory(); }
};

}  // namespace

std::unique_ptr<Device> open_cpu() { return std::make_unique<CpuDevice>(); }

}  // namespace penstock
