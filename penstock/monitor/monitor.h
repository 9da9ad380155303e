#pragma once

/// Reads numbers and returns them as plain values: the step clock, the limits
/// and use of the host, what a GPU's driver reports, and the meters of the
/// stages.
///
///     StepClock steps(device.clock());
///     for (std::uint64_t number = 0; number < 10; ++number) {
///       steps.ask();  // here the loop waits for its batch
///       steps.got(stream);
///       stream.wait(ready);
///       steps.after_wait(stream);
///       stream.step(number);
///       steps.after_step(stream);
///     }
///     steps.finish();
///     std::printf("AU %.2f\n", steps.total().utilisation());
#include "penstock/monitor/host.h"
#include "penstock/monitor/machine.h"
#include "penstock/monitor/nvml.h"
#include "penstock/monitor/nvtx.h"
#include "penstock/monitor/progress.h"
#include "penstock/monitor/series.h"
#include "penstock/monitor/snapshot.h"
#include "penstock/monitor/step_clock.h"
#include "penstock/monitor/thread_sampler.h"
#include "penstock/monitor/trace.h"
