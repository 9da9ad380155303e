#pragma once

#include <functional>
#include <string>

#include "penstock/job/job.h"
#include "penstock/session/session.h"

namespace penstock {

/// Called with a line for people; may be empty.
using MemoryNote = std::function<void(const std::string& line)>;

/// What a step of the job's model takes at its peak. Reads the rows and makes
/// the model; writes nothing. Of the options `stop`, `own` and the listener's
/// `note` are used. Throws Error(request), code model.no_memory, for a job
/// without a model, and Error(out_of_memory) where one row does not fit.
MemoryEstimate estimate_job(const Job& job, const TrainOptions& options);

/// How large a batch of the job may be (search_batch()), by trials of its model
/// on made-up rows as long as the longest. Writes nothing. Throws as above, and
/// for a model of the user's own.
FoundBatch find_batch_size(const Job& job, const MemoryNote& note,
                           StopFlag stop);

/// The job itself, or where its "loader.batch_size" is "auto", that with the
/// number that find_batch_size() gives.
Job with_batch_size(const Job& job, const TrainOptions& options);

/// What a step of `rows` rows takes in the micro-batches that are in force:
/// "micro-batches of 1 row take 1.2 MiB: ...", where that can be tried; what is
/// known of it, where it cannot.
std::string memory_that_fits(StepMemory& memory, std::int64_t rows,
                             const Device& device);

/// Before the first step: finds the micro-batch where "train.micro_batch" is
/// "auto" and none is in force, and says what a step takes.
void fit_memory(const Job& job, Stepper& stepper, Session& session,
                const MemoryNote& note);

}  // namespace penstock
