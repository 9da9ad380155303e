#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/plugin.h"
#include "penstock/job/job.h"
#include "penstock/session/predictor.h"
#include "penstock/session/rank_group.h"
#include "penstock/session/stepper.h"

namespace penstock {

/// Throws Error(request) for a model on a device that computes nothing.
void check_model_device(const ModelSpec& model, MemoryKind memory);

/// Makes the model for `data` on `device`: `steps` in all shape the learning
/// rate. Loads the trainer, which needs libtorch: Error(request) with what to
/// install when it is missing, and for a model that does not fit the data or
/// the device.
std::unique_ptr<Stepper> open_model(const ModelSpec& spec,
                                    const FittedFields& data, Device& device,
                                    std::int64_t steps);

/// The same model for predictions. Throws as open_model() does.
std::unique_ptr<Predictor> open_predictor(const ModelSpec& spec,
                                          const FittedFields& data,
                                          Device& device);

/// Joins the ranks of a job (c10d of libtorch). Waits until all are there, for
/// five minutes at most, and adds a number over all of them to see that it
/// works. Sums are made by gloo, on the host. Loads the trainer.
///
/// Throws Error(request): "ranks.port" where rank 0 cannot listen on the port,
/// "ranks.master" where the master does not answer within 10 s; and
/// Error(device) "ranks.lost" where ranks do not come.
std::unique_ptr<RankGroup> open_ranks_of(const RankPlace& place);

/// What libpenstock_trainer_RELEASE.so gives to the program.
struct TrainerPlugin {
  std::unique_ptr<Stepper> (*make_stepper)(const ModelSpec& spec,
                                           const FittedFields& data,
                                           Device& device, std::int64_t steps);
  std::unique_ptr<Predictor> (*make_predictor)(const ModelSpec& spec,
                                               const FittedFields& data,
                                               Device& device);
  /// "libtorch 2.11.0, 2 threads, no CUDA", for `doctor` and reports.
  std::string (*build_info)();
  /// Why models cannot be trained on a GPU here; empty when they can.
  std::string (*cuda_unavailable_reason)();
  std::unique_ptr<RankGroup> (*open_ranks)(const RankPlace& place);
};
/// The one symbol that is looked up in it.
inline constexpr const char* kTrainerPartEntry = "penstock_trainer_part";

/// The device to train on: `opened`, or the cpu with a warning that says why
/// where the job left the choice to us and torch cannot use the GPU that was
/// found.
std::unique_ptr<Device> training_device(
    std::unique_ptr<Device> opened, const DeviceSpec& wanted,
    const std::function<std::string()>& cuda_unavailable_reason);

/// The trainer out of these folders that was built for the torch that is loaded
/// or found (torch_libraries.h). Throws Error(request): "trainer.part_missing"
/// with what to do, "trainer.torch" for a torch that none was built for.
const TrainerPlugin& load_trainer(
    const std::vector<std::filesystem::path>& folders = plugin_folders());

}  // namespace penstock
