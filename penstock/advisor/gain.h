#pragma once

#include <optional>
#include <vector>

#include "penstock/advisor/verdict.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// Of a window's rate, if its stages were these: 0.5 means half as fast again.
/// The slowest of them, the processors that are there, or what the loop does
/// itself decides.
double gain(const Snapshot& window, const std::vector<StageNumbers>& stages);
/// The same, where the loop's own work would take `loop_s` in all.
double gain(const Snapshot& window, const std::vector<StageNumbers>& stages,
            double loop_s);

/// Seconds of processors that stages take for a sample.
double processor_s_per_sample(const Snapshot& window,
                              const std::vector<StageNumbers>& stages);
/// To make what the accelerator takes, whatever is set.
double processors_needed(const Snapshot& window);

/// The action, where it gains enough to be worth reporting.
std::optional<Action> worth_it(Action action);

}  // namespace penstock
