#pragma once

/// Reads numbers and hands them out as plain values: the step clock, what the
/// host grants us and uses, what a GPU's driver tells, and the meters of the
/// stages.
#include "penstock/monitor/host.h"
#include "penstock/monitor/nvml.h"
#include "penstock/monitor/progress.h"
#include "penstock/monitor/snapshot.h"
#include "penstock/monitor/step_clock.h"
