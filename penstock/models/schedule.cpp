#include "penstock/models/schedule.h"

#include <cmath>
#include <numbers>

namespace penstock {

Schedule schedule_of(const Learning& learning, std::int64_t steps) {
  return {.peak = learning.lr,
          .warmup_steps = warmup_of(learning, steps),
          .steps = steps,
          .decay = learning.decay};
}

// With w steps of warm-up of n in all: peak (i + 1) / w for i < w, and then, of
// decay "cosine", peak / 2 (1 + cos(pi (i - w) / (n - w))): the cosine of
// Loshchilov and Hutter (2017, SGDR) without restarts.
double learning_rate(const Schedule& schedule, std::int64_t number) {
  if (number >= schedule.steps) return 0;
  // The first step already learns, so step w - 1 is the first at the peak.
  if (number < schedule.warmup_steps)
    return schedule.peak * static_cast<double>(number + 1) /
           static_cast<double>(schedule.warmup_steps);
  auto gone = static_cast<double>(number - schedule.warmup_steps);
  auto whole = static_cast<double>(schedule.steps - schedule.warmup_steps);
  switch (schedule.decay) {
    case Learning::Decay::constant:
      return schedule.peak;
    case Learning::Decay::linear:
      return schedule.peak * (1 - gone / whole);
    case Learning::Decay::cosine:
      break;
  }
  return 0.5 * schedule.peak * (1 + std::cos(std::numbers::pi * gone / whole));
}

}  // namespace penstock
