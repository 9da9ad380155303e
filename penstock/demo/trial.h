#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "penstock/session/session.h"

namespace penstock {

/// A small network over made-up rows on a device, to see whether training works
/// here at all: the demo's positions in a folder that is removed at the end.
/// One thread.
class Trial {
 public:
  /// Throws what opening the device, reading, and making the model throw.
  /// `precision`: a value of `train.precision`.
  Trial(const std::string& device, const std::string& precision);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  const Job& job() const { return job_; }
  Device& device() { return *device_; }
  Stepper& stepper() { return *stepper_; }
  /// A step on the next batch; its loss.
  double step();
  /// What a look at the held-out rows gives, without learning: "val_loss"...
  Json validate();

 private:
  std::filesystem::path folder_;
  Job job_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Session> session_;
  std::unique_ptr<Stepper> stepper_;
  std::int64_t steps_ = 0;
};

}  // namespace penstock
