#pragma once

#include <optional>
#include <string>

#include "penstock/job/job.h"

namespace penstock {

/// The newest run of a job in its output.dir that can be resumed; nullopt if
/// the job has none. A run is one of this job where its settings are the same,
/// but for what decides how long it is (train.epochs, train.max_steps) and what
/// it leaves (output).
std::optional<std::string> newest_run(const Job& job);
/// The same for a caller that then begins a run; empty if the job has none.
/// Throws Error(request), code resume.no_run, where no run may begin.
std::string newest_run_or_begin(const Job& job, bool or_begin);

}  // namespace penstock
