#pragma once

#include <cstdint>

#include "penstock/models/model.h"

namespace penstock {

/// How the learning rate changes: it rises in a straight line, and then falls
/// along half a cosine or in a straight line to nearly 0 at the last step, or
/// stays.
struct Schedule {
  double peak = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 1;  ///< in all
  Learning::Decay decay = Learning::Decay::cosine;
};

/// That of a run of so many steps.
Schedule schedule_of(const Learning& learning, std::int64_t steps);

/// The learning rate of step `number`, from 0. A pure function, so that a run
/// that was interrupted continues with the same numbers. Beyond the last step
/// it stays at 0.
double learning_rate(const Schedule& schedule, std::int64_t number);

}  // namespace penstock
