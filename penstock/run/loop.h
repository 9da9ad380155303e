#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "penstock/report/report.h"
#include "penstock/run/sample_texts.h"
#include "penstock/session/session.h"

namespace penstock {

/// One line per step in `steps.jsonl`, in their order, written in pieces of
/// about a second, the first at once. A line whose loss is still to come waits
/// for it, and so do those after it.
class StepLog {
 public:
  explicit StepLog(RunFolder& folder) : folder_(folder) {}
  void add(Position at, std::int64_t rows, Nanoseconds since_start,
           bool loss_follows);
  /// The line of the first step that has no loss yet; its loss.
  const Json& waiting() const;
  void add_loss(double loss);
  void flush();
  /// Writes those lines too whose loss will not come.
  void end();

 private:
  struct Line {
    Json entry;
    Nanoseconds at{0};
  };
  void write(const Line& line);

  RunFolder& folder_;
  std::deque<Line> waiting_;  // for their losses
  std::string lines_;
  Nanoseconds written_ = std::chrono::seconds(-1);
};

/// The loop over the steps of a run: a batch, a step, and at the end of an
/// epoch, and of a run that ends inside one, the held-out rows (or after so
/// many steps as the job says) and a checkpoint. A validation that is the best
/// so far is followed by a checkpoint, whose writer keeps its weights too. What
/// it refers to outlives it.
class Loop {
 public:
  struct Parts {
    const Job& job;
    const TrainOptions& options;
    Session& session;  ///< timed, and at the batch that `state` says
    RunFolder& folder;
    Stepper& stepper;
    Checkpoints& checkpoints;
    Quarantine& quarantine;
    SavedState& state;  ///< moves on with each step
  };
  /// `in_all`: steps of the whole job, those before a resumption included.
  Loop(const Parts& parts, std::int64_t in_all);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Takes the steps that are left, after the validation that an interrupted
  /// run still owed; fewer, where the patience of the job ends. False when it
  /// was stopped before all was done. However it ends, what was done is saved.
  bool run();

 private:
  bool stopped() const;
  bool one_of_many() const { return p_.options.ranks != nullptr; }
  /// What this rank wishes goes into the next vote, and what any rank wishes
  /// comes out of the last one.
  void wish();
  void heed();
  /// Outside of a step: both, and a vote between them.
  void vote();
  OutputSection exported() const;
  TrainListener listener() const;
  Json measured_by_first(Json mine);
  bool ended() const;
  void check_end() const;
  void take_steps();
  std::shared_ptr<Batch> next_batch();  ///< null after the last
  std::shared_ptr<Batch> asked_batch();
  void step(const std::shared_ptr<Batch>& batch);
  /// The error of a step that ran out of memory.
  std::optional<Error> stepped(const std::shared_ptr<Batch>& batch);
  void make_room(const Batch& batch, const Error& shortage);
  void make_room_together(const Batch& batch, const Error& shortage);
  bool give_up_data(std::int64_t rows, const Error& shortage);
  std::size_t free_rows();
  [[noreturn]] void refuse_shortage(const Batch& batch, const Error& shortage);
  void take(const std::shared_ptr<Batch>& batch);
  void become_latest();
  void tell_store();
  void tell_progress(Position at);
  void take_losses(bool wait);
  [[noreturn]] void refuse_loss(double loss);
  [[noreturn]] static void refuse_step(const Batch& batch, const Error& error);
  [[noreturn]] void refuse_validation(std::int64_t epoch);
  /// Also where the run ends inside of it: one that is resumed with more steps
  /// goes on there, and ends it once more.
  void end_epoch(std::int64_t epoch);
  void report_epochs();
  /// For other programs, and where the job asks for times.
  void export_epoch(std::int64_t epoch);
  bool to_be_validated(Position at) const;
  bool validate(std::int64_t epoch);
  void note_validation(const Json& measured) const;
  bool see_held_out_rows();
  void save_if_requested();
  /// Begins to save what was done since the last time; waits only for the
  /// checkpoint before it, and for the copy of the model.
  void save();
  /// Waits until what was begun is saved.
  void finish_saving();
  /// Throws the error of a checkpoint that was not written; `wait` until it is
  /// known.
  void check_saved(bool wait);

  const Parts p_;
  const std::int64_t in_all_;
  const std::int64_t epochs_;  // for people
  StepLog log_;
  MetricSinks metrics_;
  ProgressFile progress_;
  RunTrace trace_;
  SampleTexts texts_;
  std::unique_ptr<Loader> held_out_;  // null: nothing to validate
  bool filling_;  // nobody was told yet that the store is complete
  /// An epoch, or its part, that is over for the host, and its steps that are
  /// timed.
  struct Ended {
    EpochNumbers numbers;
    std::string measures;  ///< a line for people; may be empty
    std::int64_t steps = 0;
  };
  std::deque<Ended>
      ended_;  // to be reported when the device has ended them too
  std::int64_t timed_steps_ = 0;  // of the epoch
  double loss_sum_ = 0;           // of the epoch's steps
  std::int64_t losses_ = 0;
  bool latest_ = false;  ///< the folder is what DIR/latest leads to
  bool unsaved_ = false;
  bool lost_ = false;  ///< the model is of no more use
  bool stop_agreed_ = false, save_agreed_ = false;  // by all ranks
  CheckpointWriter writer_;
};

}  // namespace penstock
