#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "penstock/run/checkpoint.h"
#include "penstock/run/report.h"
#include "penstock/run/teller.h"

namespace penstock {

/// One line per step in `steps.jsonl`, written in pieces of about a second,
/// the first at once.
class StepLog {
 public:
  explicit StepLog(RunFolder& folder) : folder_(folder) {}
  void add(Position at, std::int64_t rows, Nanoseconds since_start,
           std::optional<double> loss);
  void flush();

 private:
  RunFolder& folder_;
  std::string lines_;
  Nanoseconds written_ = std::chrono::seconds(-1);
};

/// The loop over the steps of a run: a batch, a step, and at the end of an
/// epoch the held-out rows and a checkpoint. What it refers to outlives it.
class Loop {
 public:
  struct Parts {
    const Job& job;
    const TrainOptions& options;
    Device& device;
    std::shared_ptr<const Dataset> data;
    RunFolder& folder;
    Stepper& stepper;
    Checkpoints& checkpoints;
    RunNumbers& run;
    SavedState& state;  ///< moves on with each step
  };
  /// `in_all`: steps of the whole job, those before a resumption included.
  Loop(const Parts& parts, std::int64_t in_all);

  /// Takes the steps that are left, after the validation that an interrupted
  /// run still owed. False when it was stopped before all was done. However it
  /// ends, what was done is saved.
  bool run();

  StepClock& clock() { return clock_; }
  const Loader& loader() const { return loader_; }

 private:
  bool stopped() const;
  void take_steps();
  std::optional<Batch> next_batch();
  void take(Batch& batch);
  void end_epoch(std::int64_t epoch);
  void validate(std::int64_t epoch);
  bool see_held_out_rows();
  void save();
  void save_what_was_done();

  const Parts p_;
  const std::int64_t in_all_;
  std::unique_ptr<Stream> stream_;
  StepClock clock_;
  StepLog log_;
  Loader loader_;
  std::unique_ptr<Loader> held_out_;  // null: nothing to validate
  Teller teller_;
  double loss_sum_ = 0;  // of the epoch's steps
  std::int64_t losses_ = 0;
  std::int64_t first_epoch_ = 0;  // of the first step that is taken here
  bool unsaved_ = false;
};

}  // namespace penstock
