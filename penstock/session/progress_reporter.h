#pragma once

#include <memory>
#include <optional>

#include "penstock/loader/loader.h"
#include "penstock/monitor/monitor.h"
#include "penstock/session/train_options.h"

namespace penstock {

/// Reports a run's progress to its listener: the progress ten times a second,
/// with the parts of the last seconds, and what every epoch came to. A GPU's
/// driver is asked every two seconds, and not at all when nobody listens.
class ProgressReporter {
 public:
  struct Whole {
    std::int64_t epochs = 0;  ///< 0: there is no last one
    std::int64_t steps_per_epoch = 0;
    std::int64_t steps_left = 0;  ///< for this run to take; -1: no end
    RowWork row = {};
  };
  ProgressReporter(const TrainListener& listener, StepClock& clock,
                   const Device& device, Whole whole);
  /// By another clock than the wall's and with a sensor of the caller's (null:
  /// the device is no GPU).
  ProgressReporter(const TrainListener& listener, StepClock& clock,
                   const Device& device, Whole whole, const Clock& time,
                   std::unique_ptr<GpuSensor> sensor);

  void step(Position at, std::optional<double> loss);
  /// No step follows for a while: tells how far it has come, at once.
  void pause();
  void epoch(const EpochNumbers& epoch);

 private:
  void next_window(Nanoseconds now);
  void report(Nanoseconds now);

  const TrainListener& listener_;
  StepClock& clock_;
  const Device& device_;
  const Whole whole_;
  const Clock& time_;
  const std::unique_ptr<GpuSensor> sensor_;  // null: the device is no GPU
  const HostLimits limits_ = read_host_limits();
  const Nanoseconds start_ = time_.now();
  std::int64_t steps_ = 0;
  Position at_;  // of the last step
  std::optional<double> loss_;
  Nanoseconds reported_{0};
  Nanoseconds window_start_ = start_;
  const StepParts before_ = clock_.total();  // of what is reported here
  StepParts window_ = before_, last_window_;
  HostUse window_use_ = read_host_use();
  // Of the last window. Of a GPU nothing is known before the first has ended.
  std::optional<double> cpus_used_;
  std::optional<GpuUse> gpu_;
};

/// Warns when the accelerator starved: the measured cause and the best action.
void warn_if_starved(const Snapshot& run, const TrainListener& listener);

}  // namespace penstock
