#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "penstock/advisor/advisor.h"
#include "penstock/job/job.h"
#include "penstock/monitor/monitor.h"
#include "penstock/session/memory_account.h"
#include "penstock/session/state.h"
#include "penstock/session/stepper.h"
#include "penstock/session/timeline.h"

namespace penstock {

/// One of the steps that took longest.
struct WorstStep {
  Position at;  ///< a step below 0: not known
  StepParts parts;
  std::vector<SampleId> samples;  ///< the first of its batch
};

/// What a run measured, to be reported.
struct RunNumbers {
  std::string folder;
  Nanoseconds started{0};
  std::optional<MemoryShare> before;  ///< the rows were read
  Nanoseconds first_step{0};
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  std::int64_t bad_samples = 0;  ///< masked or substituted, in all batches
  Nanoseconds validation{0};     ///< outside the time of the steps,
  Nanoseconds checkpoints{0};    ///< and so is this: the loop waited for them
  std::int64_t validations = 0;
  /// Of the checkpoints of a model.
  struct Saved {
    std::int64_t times = 0;
    std::int64_t waited = 0;  ///< for the one before, which was being written
    Nanoseconds copying{0};   ///< to the host, while the loop waits
    Nanoseconds writing{0};   ///< beside the steps
    std::size_t bytes = 0;    ///< of the newest
  } saved;
  /// When the loop asked for its first batch, and when these numbers were read.
  Nanoseconds asked{0}, read{0};
  Nanoseconds outside() const { return validation + checkpoints; }
  struct Epoch {
    std::int64_t samples = 0;
    StepParts parts;
    std::optional<double> train_loss;
    Json validated{Json::Object{}};  ///< "val_loss", "val_median_km"...
  };
  std::map<std::int64_t, Epoch> epochs;
  Json details;  ///< of the last validation; null: the model gives none
  TimelineNumbers timeline;
  /// If it was seen; the snapshot has it where the driver moves memory.
  std::optional<SpilledMemory> spilled;
  std::vector<WorstStep> worst_steps;  ///< the slowest first
  Snapshot snapshot;
  /// Of the whole run, those before a resumption included.
  std::optional<Best> best;
  Json test = {};             ///< of the test side, by name; null: none
  RowWork row;                ///< what the model does with each
  Json model;                 ///< StepperFacts::about
  std::vector<OomEvent> oom;  ///< what was done about shortages of memory
  std::optional<MemoryByOwner> model_peak;  ///< none: not known
  MemoryAccount account;                    ///< of the device, over the run
  /// What the tuner changed, and why it went no further; none: it was off, or
  /// had nothing to change.
  struct Tuning {
    std::vector<Decision> decisions;
    std::string rests;
    /// Since its last change; none: there was no change, or too few steps
    /// since.
    std::optional<Snapshot> settled;
  };
  std::optional<Tuning> tuning;
  /// What the verdict is about: the settings that were left in the end.
  const Snapshot& last_window() const {
    return tuning && tuning->settled ? *tuning->settled : snapshot;
  }

  /// Where the wall time went; nullopt where the steps are timed by another
  /// clock.
  std::optional<OutsideTime> outside_of(const Job& job) const;

  /// Steps that are no work: what they computed is the host's time.
  void leave_out_compute();
};

}  // namespace penstock
