#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/plugin.h"
#include "penstock/run/stepper.h"

namespace penstock {

/// The `model` section of a job with the parts of `train` that a model needs.
/// A value; the defaults are those of the schema.
struct ModelSpec {
  std::string kind = "none";  ///< "none" or "set_position"

  // set_position: predicts where something is from a set of receivers.
  std::string set;       ///< a json_set field
  std::string target;    ///< a columns field of two: latitude, longitude
  std::string latitude;  ///< keys of the set: where a receiver is, in degrees
  std::string longitude;
  std::string strength;     ///< key of the set, in dB: weights its centroid
  std::int64_t width = 64;  ///< of all layers; a multiple of 8
  // What a set is learned from is made a little different in every epoch.
  double dropout = 0.1;    ///< share of receivers left out
  double noise_db = 3;     ///< deviation of the noise added to strengths
  std::uint64_t seed = 0;  ///< of the first weights, and of these two

  double lr = 2e-3;  ///< the peak, after the warm-up
  std::int64_t warmup_steps = 50;
  double weight_decay = 0.01;
  double clip_norm = 1;  ///< of all gradients together; 0: no clipping
  int threads = 0;       ///< of the model's mathematics; 0: all that we may use

  bool none() const { return kind == "none"; }
};

/// Checks a job's `model` section: missing, "none" or an object. Throws
/// Error(request) with the JSON path, also for a model that does not fit the
/// fields.
ModelSpec parse_model(const Json* section, const std::vector<Field>& fields);

/// Reads the keys of `train` that a model needs; the caller reads the others
/// and then calls `train.finish()`.
void add_training(Spec& train, ModelSpec& model);

/// How many threads the mathematics of a model gets here.
int threads_of(const ModelSpec& model);

/// Writes a model's settings with every default filled in, and those of
/// `train` that it needs, into a report's "settings".
void show_model(const ModelSpec& model, Json& settings);

/// Throws Error(request) for a model on a device that computes nothing.
void check_model_device(const ModelSpec& model, MemoryKind memory);

/// Makes the model for `data` on `device`: `steps` in all shape the learning
/// rate. Loads the trainer, which needs libtorch: Error(request) with what to
/// install when it is missing, and for a model that does not fit the data or
/// the device.
std::unique_ptr<Stepper> open_model(const ModelSpec& spec,
                                    const TableDataset& data, Device& device,
                                    std::int64_t steps);

/// The one symbol that is looked up in libpenstock_trainer.so. Program and part
/// are built together; `version` refuses a stranger.
struct TrainerPlugin {
  static constexpr std::int64_t kVersion = 2;

  std::int64_t version;
  std::unique_ptr<Stepper> (*make_stepper)(const ModelSpec& spec,
                                           const TableDataset& data,
                                           Device& device, std::int64_t steps);
  /// "libtorch 2.11.0, 2 threads, no CUDA", for `doctor` and reports.
  std::string (*build_info)();
  /// Why models cannot be trained on a GPU here; empty when they can.
  std::string (*cuda_unavailable_reason)();
};
inline constexpr const char* kTrainerPartEntry = "penstock_trainer_part";

/// The device to train on: `opened`, or the cpu with a warning that says why
/// where the job left the choice to us and the trainer cannot use the GPU that
/// was found.
std::unique_ptr<Device> training_device(std::unique_ptr<Device> opened,
                                        const DeviceSpec& wanted,
                                        const TrainerPlugin& trainer);

/// The trainer out of the first of these folders that has it. Throws
/// Error(request), "trainer.part_missing", with what to do.
const TrainerPlugin& load_trainer(
    const std::vector<std::filesystem::path>& folders = plugin_folders());

}  // namespace penstock
