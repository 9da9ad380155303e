#pragma once

#include <string>

#include "penstock/report/report.h"

namespace penstock {

/// A run for people, in 80 columns: the verdict with what to change, where the
/// time went over the run, the stages' rates beside the one that is needed,
/// epochs, memory, the longest steps.
std::string run_text(const FoundRun& run);

/// What compare_runs() found, in 80 columns.
std::string comparison_text(const Json& comparison);

}  // namespace penstock
