#pragma once

#include <cstdint>

namespace penstock {

/// How the learning rate goes: up in a straight line, then down along half a
/// cosine to nearly nothing at the last step.
struct Schedule {
  double peak = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 1;  ///< in all
};

/// The learning rate of step `number`, from 0. A pure function, so that a run
/// that was interrupted continues with the same numbers. Beyond the last step
/// it stays at 0.
double learning_rate(const Schedule& schedule, std::int64_t number);

}  // namespace penstock
