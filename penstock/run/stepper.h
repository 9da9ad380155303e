#pragma once

#include <cstdint>
#include <optional>

#include "penstock/loader/loader.h"

namespace penstock {

/// What is done with each batch. The trainer brings one with a model.
class Stepper {
 public:
  virtual ~Stepper() = default;
  /// Queues one step on `stream`, which already waits for the batch.
  virtual void step(const Batch& batch, Stream& stream,
                    std::int64_t number) = 0;
  /// False when a step is no work at all, so that utilisation means nothing.
  virtual bool takes_time() const = 0;
  /// The loss of the last step, where there is one; may wait for the device.
  virtual std::optional<double> loss() = 0;
};

/// Steps without a model: the device alone takes its step time.
class DeviceStepper : public Stepper {
 public:
  explicit DeviceStepper(const Device& device)
      : takes_time_(device.memory_kind() == MemoryKind::sim) {}
  bool takes_time() const override { return takes_time_; }
  void step(const Batch&, Stream& stream, std::int64_t number) override {
    stream.step(static_cast<std::uint64_t>(number));
  }
  std::optional<double> loss() override { return std::nullopt; }

 private:
  bool takes_time_;
};

}  // namespace penstock
