#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/loader/loader.h"
#include "penstock/monitor/monitor.h"
#include "penstock/session/rank_group.h"
#include "penstock/session/step_memory.h"

namespace penstock {

/// What a run leaves of a model for other programs.
struct WeightsForm {
  std::string file = "model.safetensors";  ///< the weights
  /// Further files, by their names: `config.json`, say.
  std::vector<std::pair<std::string, std::string>> beside = {};
  bool adapter =
      false;  ///< small: what every run leaves in its own folder, too
};

/// A model's whole state on the host: what a checkpoint holds.
struct ModelState {
  std::vector<NamedTensor> tensors;  ///< views into `memory`; names are unique
  std::vector<std::byte> memory;
  Json json;  ///< what is no tensor: counts, the learning rate's place...
};

/// What was asked of a model by a setting of `train`, and what it does.
struct SwitchInForce {
  std::string name;  ///< of the setting
  Json asked, got;
  std::string why;  ///< they differ; empty where they do not
};

/// What is known of steps before the first of them.
struct StepperFacts {
  /// False when a step is no work at all, so that utilisation means nothing.
  bool takes_time = true;
  /// True: every step has a loss, and there is something to validate and save.
  bool has_model = false;
  /// The settings that not every model has, as this one follows them.
  std::vector<SwitchInForce> in_force = {};
  /// What it does with each row, for rates and the share of the peak.
  RowWork row_work = {};
  WeightsForm form = {};
  /// The model in `report.json`, by name; null where there is nothing to tell.
  /// The first step may add to it.
  Json about = {};
};

/// What a validation found.
struct Validated {
  /// By name: "val_loss", and what else the model measures, as "val_accuracy".
  Json metrics{Json::Object{}};
  /// An object for the report, in which classes and samples are numbers; null
  /// for a model that gives no details.
  Json details = {};
};

/// What is done with each batch. The trainer brings one with a model.
/// A batch's memory is used again when nobody holds the batch.
///
/// One thread. Its work is done in the order of the calls; what tells a number
/// or a state waits for the device.
class Stepper {
 public:
  explicit Stepper(StepperFacts facts) : facts_(std::move(facts)) {}
  virtual ~Stepper() = default;
  const StepperFacts& facts() const { return facts_; }
  /// Queues one step on `stream`, which already waits for the batch. One that
  /// throws Error(out_of_memory) has changed nothing that the next call uses.
  virtual void step(const std::shared_ptr<Batch>& batch, Stream& stream,
                    std::int64_t number) = 0;
  /// The mean losses of the steps, in their order, each told once: of those
  /// that are known to have ended, or of all when it shall wait. On the cpu a
  /// step's is known when step() returns. None without a model.
  virtual std::vector<double> losses(bool wait) = 0;

  /// Looks at a batch of held-out rows without learning from it.
  virtual void validate(const std::shared_ptr<Batch>&, Stream&) {}
  /// What the batches since the last call came to. Starts again.
  virtual Validated validated() { return {}; }
  /// Weights ("model.NAME"), optimiser and all else that the next step depends
  /// on. `reuse`: the memory of an earlier state that is no longer needed. A
  /// state of the same size is copied into it without asking the system for
  /// more.
  ModelState save(std::vector<std::byte> reuse = {}) {
    return state_in(std::move(reuse));
  }
  /// Goes on from there, bit for bit. Throws Error(request) when `state` is
  /// of another model.
  virtual void restore(const ModelState&) {}
  /// From here on this is one of several ranks, all of which make the same
  /// calls: it starts with the state of rank 0, each step votes and adds its
  /// gradients to those of the others, validated() gives what the batches of
  /// all came to, and save() gives the state on rank 0, an empty one elsewhere.
  /// `ranks` outlives it. Null: by itself again, with the weights that all
  /// have.
  virtual void join(RankGroup* /*ranks*/) {}
  /// Null where the memory of the steps is not known.
  StepMemory* memory() const { return memory_; }

 protected:
  StepperFacts facts_;
  StepMemory* memory_ = nullptr;  ///< a part of the stepper

 private:
  virtual ModelState state_in(std::vector<std::byte> /*memory*/) { return {}; }
};

/// Steps without a model, to measure the input alone: they take the time that
/// the session's device takes for a step.
class NoModel : public Stepper {
 public:
  explicit NoModel(const Device& device)
      : Stepper({.takes_time = device.memory_kind() == MemoryKind::sim}) {}
  void step(const std::shared_ptr<Batch>&, Stream&, std::int64_t) override {}
  std::vector<double> losses(bool) override { return {}; }
};

}  // namespace penstock
