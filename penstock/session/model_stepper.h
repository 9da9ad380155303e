#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "penstock/job/job.h"
#include "penstock/session/open_loader.h"
#include "penstock/session/stepper.h"
#include "penstock/session/train_options.h"

namespace penstock {

/// The device of a run: one that its model can be trained on. Throws
/// Error(request) or Error(device) if none exists, before any row is read.
std::shared_ptr<Device> device_of_run(const Job& job,
                                      const TrainOptions& options);

/// Makes the job's model for rows that were planned, on the device of a run:
/// throws what would end that run, and says what the model takes. A model whose
/// weights are read from `model.path` is not made.
void check_model(const Job& job, const Dataset& rows, Device& device,
                 const std::function<void(const std::string& line)>& note);

/// The same model, whatever its weights. Throws what make_stepper() does.
std::unique_ptr<Stepper> model_of(const Job& job, const Dataset& rows,
                                  Device& device);

/// "train.warmup_steps is 50, and the run takes 30 steps: ..."; empty where
/// the learning rate gets to train.lr.
std::string warmup_line(const Job& job, std::int64_t steps);
/// Says what checkpoints take, or throws Error(request) where there is no room
/// for them.
void check_room(Stepper& stepper, const std::filesystem::path& folder,
                const Job& job,
                const std::function<void(const std::string& line)>& note);

/// What the job's model does with each batch, on the session's device; NoModel
/// where the job has none. `folder`: of the run, where it has one. Throws
/// Error(request) for rows that it cannot be made for.
std::unique_ptr<Stepper> make_stepper(const Job& job,
                                      const TrainOptions& options,
                                      const std::shared_ptr<Session>& session,
                                      const std::filesystem::path& folder = {});

}  // namespace penstock
