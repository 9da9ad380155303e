#pragma once

#include <cstdint>
#include <functional>

#include "penstock/job/job.h"
#include "penstock/run/train_result.h"
#include "penstock/session/session.h"

namespace penstock {

/// The job of one fold, from 0, of a job with `train.folds`.
Job job_of_fold(const Job& job, std::int64_t fold);

/// Trains all folds of a job, one after the other, by `train_one`: RUN/folds/0
/// and so on are complete runs, and RUN holds run.json, report.json and
/// report.html with the mean and the spread. `options.resume` may name such a
/// RUN: folds that are finished there are taken over, one that is not
/// continues. Throws Error(request), code train.folds, for options of a single
/// run.
TrainResult train_folds(
    const Job& job, const TrainOptions& options,
    const std::function<TrainResult(const Job&, const TrainOptions&)>&
        train_one);

/// Throws Error(request), code train.folds.
[[noreturn]] void refuse_folds_of_ranks();

}  // namespace penstock
