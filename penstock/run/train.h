#pragma once

#include <functional>
#include <string>
#include <vector>

#include "penstock/job/job.h"
#include "penstock/run/train_result.h"
#include "penstock/session/session.h"

namespace penstock {

/// Runs a job: prepares its data set, takes its steps, writes its run folder.
TrainResult train(const Job& job, const TrainOptions& options);

/// What a run of this job would hold, and where: reads its rows, plans, makes
/// its model, and ends before anything is written. Throws what would end that
/// run. `note` and `stop` as in OpenOptions, but for the plan itself.
DatasetFacts plan_rows(const Job& job,
                       const std::function<void(const std::string& line)>& note,
                       StopFlag stop);

/// The job of an earlier run, for `--resume`. Throws Error(request) when the
/// folder is no run of ours or is damaged.
Job job_of_run(const std::string& run_folder);
/// The same with some settings changed (see read_job()), not yet checked.
Json document_of_run(const std::string& run_folder,
                     const std::vector<std::string>& sets);

}  // namespace penstock
