#pragma once

#include <cstdint>
#include <optional>

#include "penstock/advisor/verdict.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// The wall time of a run, and what of it passed outside of its steps.
struct OutsideTime {
  double wall_s = 0;
  StepParts steps;  ///< of the run; what is not in their wall time is outside

  /// The loop waited for checkpoints for so long: while the model was copied,
  /// and for the writer where it was still busy with the one before.
  struct Checkpoints {
    double waited_s = 0;
    std::int64_t times = 0;
    double copying_s = 0, writing_s = 0;  ///< of all of them
    std::optional<std::int64_t> every;    ///< steps; missing: once an epoch
  } checkpoints;
  struct Validations {
    double seconds = 0;
    std::int64_t times = 0;
    std::int64_t every = 1;  ///< epochs
  } validations;
  double epoch_start_s = 0;  ///< until the first batch of an epoch

  double window_s() const { return seconds(steps.wall); }
  /// What nothing above accounts for: the rows are opened, the first step
  /// starts the clock, files are written at the end.
  double other_s() const;
  /// What comes again as a run goes on, and so can be the limit.
  double recurring_s() const {
    return checkpoints.waited_s + validations.seconds;
  }

  /// {"checkpoint_s", "validation_s", "epoch_start_s", "other_s"}
  Json json() const;
};

/// The verdict on the whole time of a run; `window` is the one on its steps.
///
/// Checkpoints and validation together are the limit where they took longer
/// than any part of the steps' time. Fewer of them are offered, with the gain
/// of the wall time, also beside another limit.
Verdict with_outside(Verdict window, const OutsideTime& time);

}  // namespace penstock
