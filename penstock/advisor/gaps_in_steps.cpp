#include "penstock/advisor/gaps_in_steps.h"

#include <algorithm>

#include "penstock/advisor/pools.h"
#include "penstock/advisor/thresholds.h"
#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr double kDrains = 0.9;  // of the steps
// Works for less than that of its steps' time. The driver's number is up to 0.1
// from what the kernels themselves add up to (bench/gpu_gaps.py).
constexpr double kGaps = 0.75;
constexpr int kMostTimes = 8;  // as large a batch

/// How many times as large a batch the accelerator takes in the same time.
int times_as_large(double busy) {
  int times = 1;
  while (times < kMostTimes && 2 * times * busy <= 1) times *= 2;
  return times;
}

/// Where samples come at least that fast.
void offer_larger_batches(const Snapshot& window, Verdict& verdict) {
  const int times = times_as_large(*window.gpu_busy);
  const double now =
      static_cast<double>(window.parts.samples) / seconds(window.parts.wall);
  const double gain =
      std::min<double>(times, slowest_rate(window.stages) / now) - 1;
  if (window.batch_size <= 0 || gain < kSmallestGain) return;
  verdict.actions.push_back(
      {.knob = "loader.batch_size",
       .from = window.batch_size,
       .to = times * window.batch_size,
       .predicted_gain = gain,
       .cost = formatted(
           "a change to the training, with one step for each %d of the present "
           "ones; %d times the memory for a batch and its activations",
           times, times)});
}

}  // namespace

std::optional<Verdict> gaps_in_steps(const Snapshot& window,
                                     const std::string& measured) {
  const StepParts& parts = window.parts;
  if (!window.gpu_busy || parts.steps == 0) return std::nullopt;
  const double drained =
      static_cast<double>(parts.drained) / static_cast<double>(parts.steps);
  if (drained < kDrains || *window.gpu_busy >= kGaps * parts.utilisation())
    return std::nullopt;
  const double percent = 100 * *window.gpu_busy;
  Verdict verdict{
      .limit = Limit::host,
      .cause =
          formatted("within the steps the accelerator waits for the training "
                    "loop and is busy for only %.0f %% of the time",
                    percent),
      .because = measured +
                 formatted("; after %.0f %% of the steps the accelerator was "
                           "idle when the loop asked for the next batch; its "
                           "driver reports it busy for %.0f %% of the time",
                           100 * drained, percent),
      .no_action =
          "no input setting changes that: let a step queue its work in fewer "
          "calls (a CUDA graph, torch.compile with mode=\"reduce-overhead\"), "
          "or find out what it waits for"};
  offer_larger_batches(window, verdict);
  return verdict;
}

}  // namespace penstock
