#include "penstock/session/trainer_plugin.h"

#include "penstock/base/shown.h"
#include "penstock/session/torch_libraries.h"

namespace penstock {
namespace {

constexpr const char* kTrainerPrefix = "libpenstock_trainer_";

/// With less, libtorch ends the process while it is loaded.
constexpr std::size_t kTrainerBytes = 512 << 20;

/// Without one, the library of mathematics in libtorch ends the process.
void check_there_is_a_current_folder() {
  std::error_code failed;
  if (!std::filesystem::current_path(failed).empty() ||
      failed != std::errc::no_such_file_or_directory)
    return;
  throw Error(ErrorKind::request,
              {.code = "file.current_folder",
               .what = "cannot load the training plugin",
               .where = "the current folder",
               .why = "the folder has been removed, and libtorch needs it",
               .next = "change to an existing folder"});
}

std::string how_to_install(const std::vector<std::string>& releases) {
  std::string text;
  if (!releases.empty())
    text = "pip install 'torch==" + releases.front() +
           ".*', which is about 4 GB installed with its CUDA packages (a "
           "trainer exists for " +
           listed(releases) + "); ";
  return text +
         "in a build from source, run tools/fetch_torch and build again; or "
         "set \"model\": \"none\" to measure the input alone";
}

/// The trainer needs symbols of c10d, which nearly every torch has.
[[noreturn]] void refuse_without_distributed(const ErrorParts& parts) {
  throw Error(
      ErrorKind::request,
      {.code = "trainer.torch",
       .what = "cannot train a built-in model with this PyTorch",
       .where = parts.where,
       .why = "PyTorch was built without torch.distributed: " + parts.why,
       .next = "install a release from PyPI, or build PyTorch with "
               "USE_DISTRIBUTED=1"});
}

}  // namespace

void check_model_device(const ModelSpec& model, MemoryKind memory) {
  if (model.none() || memory != MemoryKind::sim) return;
  throw Error(
      ErrorKind::request,
      {.code = "model.on_sim",
       .what = "cannot train a model on the simulated device",
       .where = "model",
       .why =
           "\"device\" is \"sim\", which simulates time and computes nothing",
       .next = "set \"device\" to \"auto\", or \"model\" to \"none\""});
}

const TrainerPlugin& load_trainer(
    const std::vector<std::filesystem::path>& folders) {
  check_there_is_a_current_folder();
  if (!has_addresses_left(kTrainerBytes))
    throw Error(
        ErrorKind::out_of_memory,
        {.code = "trainer.out_of_memory",
         .what = "cannot load the training plugin",
         .where = "the address space of this process",
         .why = "libtorch needs " + std::to_string(kTrainerBytes >> 20) +
                " MiB, and the limit of the process leaves less",
         .next = "raise the limit (ulimit -v), or set \"model\": "
                 "\"none\" to measure the input alone"});
  const TrainerChoice chosen = choose_trainer(kTrainerPrefix, folders);
  const std::string release = chosen.release.empty() ? "*" : chosen.release;
  try {
    return load_plugin<TrainerPlugin>(
        {.library = kTrainerPrefix + release + ".so",
         .entry = kTrainerPartEntry,
         .shown = "the training plugin",
         .kind = ErrorKind::request,
         .code = "trainer",
         .install = how_to_install(chosen.releases)},
        folders);
  } catch (const Error& error) {
    if (error.parts().code != "trainer.part_missing") throw;
    if (chosen.refusal) throw *chosen.refusal;
    if (error.parts().why.find("c10d") != std::string::npos)
      refuse_without_distributed(error.parts());
    throw;
  }
}

std::unique_ptr<Device> training_device(
    std::unique_ptr<Device> opened, const DeviceSpec& wanted,
    const std::function<std::string()>& cuda_unavailable_reason) {
  bool ours_to_choose = wanted.kind == "auto";
  if (!ours_to_choose || opened->memory_kind() != MemoryKind::cuda)
    return opened;
  std::string why = cuda_unavailable_reason();
  if (why.empty()) return opened;
  log(LogLevel::warning, "the device is 'cpu': " + opened->name() +
                             " exists, but torch cannot use it: " + why);
  return open_device({.kind = "cpu"});
}

namespace {

const TrainerPlugin& trainer_for(const ModelSpec& spec, const Device& device) {
  PENSTOCK_ASSERT(!spec.none(), "there is a model to open");
  check_model_device(spec, device.memory_kind());
  // libtorch has two pools, which the calling thread is part of.
  try_threads("libtorch", 2 * (threads_of(spec) - 1));
  return load_trainer();
}

}  // namespace

std::unique_ptr<Stepper> open_model(const ModelSpec& spec,
                                    const FittedFields& data, Device& device,
                                    std::int64_t steps) {
  return trainer_for(spec, device).make_stepper(spec, data, device, steps);
}

std::unique_ptr<RankGroup> open_ranks_of(const RankPlace& place) {
  return load_trainer().open_ranks(place);
}

std::unique_ptr<Predictor> open_predictor(const ModelSpec& spec,
                                          const FittedFields& data,
                                          Device& device) {
  return trainer_for(spec, device).make_predictor(spec, data, device);
}

}  // namespace penstock
