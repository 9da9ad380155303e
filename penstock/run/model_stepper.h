#pragma once

#include <memory>

#include "penstock/job/job.h"
#include "penstock/run/session.h"
#include "penstock/run/stepper.h"
#include "penstock/run/train_options.h"

namespace penstock {

/// The device of a run: one that its model can be trained on. Throws
/// Error(request) or Error(device) where there is none, before any row is read.
std::shared_ptr<Device> device_of_run(const Job& job,
                                      const TrainOptions& options);

/// What the job's model does with each batch, on the session's device; NoModel
/// where the job has none. Throws Error(request) for rows that it cannot be
/// made for.
std::unique_ptr<Stepper> make_stepper(const Job& job,
                                      const TrainOptions& options,
                                      const std::shared_ptr<Session>& session);

}  // namespace penstock
