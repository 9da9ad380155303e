#pragma once

#include <vector>

#include "penstock/exec/exec.h"
#include "penstock/monitor/host.h"
#include "penstock/monitor/step_clock.h"

namespace penstock {

/// All numbers of a run at one moment, or of a window between two.
struct Snapshot {
  StepParts parts;
  std::int64_t samples = 0;          ///< consumed by the steps of `parts`
  std::vector<StageNumbers> stages;  ///< of the loader, in order of the data
  Nanoseconds wait_order{0};  ///< part of wait_data: out-of-order results
  HostLimits limits;
  HostUse use;
};

}  // namespace penstock
