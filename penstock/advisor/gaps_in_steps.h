#pragma once

#include <optional>
#include <string>

#include "penstock/advisor/verdict.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// The verdict on steps within which the accelerator waits for the training
/// loop: for kernels that are launched one by one, or for what the loop does
/// between them. `compute` cannot show that, since the events around a step
/// cover the gaps between its kernels; but such an accelerator is done whenever
/// the loop comes back, and its driver sees it idle. Missing where that was not
/// seen, or nobody asked the driver.
///
/// A larger batch is offered, with the rate that it would bring if all that the
/// loop does in a step took as long as before. It is other mathematics, and no
/// tuner's to set. `measured`: the numbers of the window in words, before those
/// of the gaps.
std::optional<Verdict> gaps_in_steps(const Snapshot& window,
                                     const std::string& measured);

}  // namespace penstock
