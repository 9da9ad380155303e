#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "penstock/advisor/advisor.h"
#include "penstock/device/device.h"

namespace penstock {

class Device;
class Predictor;
class RankGroup;
class Session;
class Stepper;
struct FittedFields;
struct Job;

/// How a run talks while it is running. All may be empty.
struct TrainListener {
  std::function<void(const std::string& line)> note;  ///< plans, summaries
  std::function<void(const Progress&)> progress;      ///< at most 10 per second
};

/// Makes the steps of a model that the trainer's plugin does not know.
struct OwnTrainer {
  /// Why such models cannot be trained on a GPU here; empty when they can.
  std::function<std::string()> cuda_unavailable_reason;
  /// Of the job, on the session's device; `steps` in all. `folder`: of the run,
  /// the same on all ranks; empty where the run has no folder.
  std::function<std::unique_ptr<Stepper>(
      const Job& job, const std::shared_ptr<Session>& session,
      std::int64_t steps, const std::filesystem::path& folder)>
      make_stepper;
  /// The other ranks of the job; null where it is one process.
  std::function<std::unique_ptr<RankGroup>(const Job& job)> open_ranks = {};
  DeviceAllocator allocator = {};  ///< of a GPU's memory; may be empty
  /// The same model for predictions, on a device. The job may lack the target,
  /// which is one of `fields` all the same.
  std::function<std::unique_ptr<Predictor>(
      const Job& job, const FittedFields& fields, const Device& device)>
      make_predictor = {};
};

struct TrainOptions {
  /// Set (by a signal handler, say) to end after the step at hand.
  const std::atomic<bool>* stop = nullptr;
  /// Set it to have a checkpoint saved after the step at hand; the run sets it
  /// back and goes on.
  std::atomic<bool>* save = nullptr;
  TrainListener listener;
  /// A run folder to go on from: position and model are taken from it, and
  /// the statistics are applied, not fitted again. The rows must be the same.
  std::string resume;
  /// Without `resume`: go on from the newest run of this job in its output.dir
  /// (see newest_run()), of several ranks from the one that rank 0 finds.
  bool resume_newest = false;
  /// With that: begin a run if the job has no run yet. Else that is an error.
  bool or_begin = false;
  /// With `resume`: steps of data to leave out, or below 0 to take again (see
  /// skip_steps()). The run takes as many steps as it would without. Its folder
  /// can be resumed, and `latest` leads to it, once its rows are open.
  std::int64_t skip = 0;
  /// A folder that gets the weights of a run that took all its steps,
  /// `model.safetensors`, and the statistics of its rows. Empty: none.
  std::string output;
  /// The run folder's name in `output.dir`. Empty: the time.
  std::string run_name;
  /// Keep what all threads and the device did as `trace.json` in the folder.
  bool trace = false;
  /// For a job whose model is "own".
  std::optional<OwnTrainer> own;
  /// The other ranks, where this process is one of several: train() joins them.
  RankGroup* ranks = nullptr;
};

}  // namespace penstock
