#pragma once

#include "penstock/device/sim/device.h"

namespace penstock {

/// A stream of a SimDevice. Work that is queued when it is destroyed still
/// counts, as far as an event that was recorded after it is waited for.
class SimStream final : public Stream {
 public:
  SimStream(SimDevice& device, std::size_t stream)
      : Stream(nullptr, true), device_(device) {
    line_.stream = stream;
  }
  ~SimStream() override { device_.close_stream(line_.stream); }
  SimStream(const SimStream&) = delete;
  SimStream& operator=(const SimStream&) = delete;

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    device_.queue_copy(line_, to, from, bytes);
  }
  void run(DeviceOperation operation) override {
    device_.queue_operation(line_, std::move(operation));
  }
  void wait(const Event& event) override;
  void step(std::uint64_t number) override;
  void synchronize() override;

 private:
  Nanoseconds next_start() const;
  Event recorded(bool timed) override;

  SimDevice& device_;
  SimLine line_;
};

}  // namespace penstock
