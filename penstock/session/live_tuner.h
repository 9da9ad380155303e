#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/advisor/advisor.h"
#include "penstock/job/job.h"

namespace penstock {

/// Sets the threads of a loader while a loop takes its batches: a window of two
/// seconds or more after the other, and by each at most one change. Whatever it
/// does, batches and their order stay the same.
///
/// It may change `loader.workers` up to `loader.cpus`, `loader.readers` up to
/// as many as the source can use, and `loader.prefetch` while the batches that
/// lie ready take less than 256 MiB: each only where the job leaves it open.
/// One thread, the loop's.
class LiveTuner {
 public:
  /// Null where nothing is to be tuned: the job turns tuning off, the steps are
  /// timed by a virtual clock, batches are made on the loop's own thread, or
  /// the job sets all that could be.
  static std::unique_ptr<LiveTuner> of(const Job& job, const Dataset& rows,
                                       const LoaderOptions& options,
                                       const Loader& loader,
                                       const Clock& clock = wall_clock());

  /// A step has ended. `now` gives all numbers up to here, and is called once
  /// in a while. `note` gets a line for people for each change; may be empty.
  void step(Loader& loader, const std::function<Snapshot()>& now,
            const std::function<void(const std::string&)>& note);
  /// The loop turns to something else, or to its next epoch, which may last for
  /// less than a window: this one continues with the next step, and what lies
  /// between is no part of its time.
  void pause() {
    if (!paused_at_) paused_at_ = clock_.now();
  }
  /// The loop has another loader now: it gets the threads as they were set.
  void use(Loader& loader);
  /// From here on no more than one batch is ready ahead, whatever would be
  /// gained: there is no memory for more.
  void keep_one_ahead() { one_ahead_ = true; }

  const Tuner& tuner() const { return tuner_; }
  /// What was counted since the last change, where `now` is all up to now;
  /// none: there was no change, or there were too few steps since.
  std::optional<Snapshot> settled(const Snapshot& now) const;

 private:
  LiveTuner(Tuner tuner, LoaderThreads threads, const Clock& clock)
      : tuner_(std::move(tuner)), threads_(threads), clock_(clock) {}
  LoaderThreads threads() const;
  /// False where that could not be done, which ends no run: the log says why.
  bool set(Loader& loader);

  Tuner tuner_;
  LoaderThreads threads_;  // of the job, where there is no knob
  const Clock& clock_;
  bool one_ahead_ = false;
  std::int64_t steps_ = 0;  // of this window; 0: it has not begun
  std::int64_t skip_ = 0;   // steps until it may begin
  Nanoseconds began_{0};
  std::optional<Nanoseconds> paused_at_;
  Snapshot before_;  // the numbers when it began
  std::optional<Snapshot> changed_at_;
};

/// What was counted between two snapshots of one loop.
Snapshot since(const Snapshot& earlier, const Snapshot& now);

}  // namespace penstock
