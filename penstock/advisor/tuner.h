#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// A number that may be changed while a run goes on.
struct Knob {
  std::string name;  ///< a key of the job, or `STAGE.workers`
  /// The pool of threads that it sets, or the stage without a pool; empty: it
  /// sets how many batches may lie ready.
  std::string pool;
  int value = 1;
  int least = 1;
  int most = 1;
};

/// What the knobs may use in all, at any instant.
struct TunerBudget {
  double cpus = 1;   ///< of threads that are all busy
  int threads = 64;  ///< whether or not they use a processor
};

/// One change that was made, and what became of it.
struct Decision {
  std::int64_t window = 0;  ///< after which it was made; the first is 1
  double at_s = 0;          ///< the sum of the windows' wall times up to then
  std::string knob;
  int from = 0, to = 0;
  std::string reason;
  double predicted_gain = 0;            ///< of the rate, by this and the next
  std::optional<double> measured_gain;  ///< of this one; none: not yet known
  bool undone = false;

  Json json() const;
};

/// Sets the knobs of an input pipeline by what its meters measured.
///
///     Tuner tuner({.cpus = 8}, knobs);
///     if (std::optional<Decision> change = tuner.next(window))
///       set(change->knob, change->to);
///
/// Threads are set by water-filling: from the fewest on, the pool with the
/// lowest rate gets one more until each is kAhead times as fast as the steps or
/// the budget is used up. That is the aim; each call makes one change towards
/// it, at most a doubling, and first takes threads away where there are too
/// many for the budget. A change is judged by the next window: by the changed
/// pool's own rate, since another pool may be the limit by then. One that does
/// not pay is undone and not tried again for kFrozen windows, then twice as
/// many. More batches lie ready only where each pool is fast enough, and the
/// loop waits all the same, or where the threads of no pool are at work all the
/// time: they bound how many reads can be under way.
///
/// A pure function of the windows that it is given. One thread.
class Tuner {
 public:
  /// Throws Error(internal) for a knob outside of its own limits.
  Tuner(TunerBudget budget, std::vector<Knob> knobs);

  /// What to change after this window, which was measured with the knobs as
  /// they are. Windows in which they were changed, or that hold a validation,
  /// are not to be given. A window that says nothing changes nothing.
  std::optional<Decision> next(const Snapshot& window);

  /// The last change could not be made: it counts as undone.
  void give_up();

  const std::vector<Knob>& knobs() const { return knobs_; }
  const std::vector<Decision>& decisions() const { return decisions_; }
  /// Why the last window changed nothing; empty where it did.
  const std::string& rests() const { return rests_; }

  static constexpr double kAhead = 1.2;  ///< of the steps' rate
  static constexpr std::int64_t kFrozen = 20;
  static constexpr int kDeepest = 16;  ///< batches ready ahead, at most

 private:
  struct Freeze {
    std::int64_t until = 0, next = kFrozen;
  };
  struct Pending {
    std::size_t knob = 0;
    double rate = 0;       ///< samples per second, before the change
    double pool_rate = 0;  ///< of the changed pool
    double waits = 0;      ///< share of the wall time
    double doubted = 0;    ///< the rate in a window that was not clear
  };
  std::optional<Decision> judge(const Snapshot& window);
  std::optional<Decision> undo(double rate);
  Knob& freeze_changed();
  std::optional<Decision> hurry(const Snapshot& window);
  std::optional<Decision> deepen(const Snapshot& window);
  std::optional<Decision> relax(const Snapshot& window);
  std::map<std::string, int> fill(const Snapshot& window);
  Decision change(const Snapshot& window, std::size_t knob, int to,
                  std::string reason, double gain);
  bool frozen(const Knob& knob) const;
  /// The knob that sets a pool's threads; null where none does.
  const Knob* of_pool(const std::string& pool) const;

  const TunerBudget budget_;
  std::vector<Knob> knobs_;
  std::vector<Decision> decisions_;
  std::map<std::string, Freeze> frozen_;
  std::optional<Pending> pending_;
  std::int64_t windows_ = 0, calm_ = 0;
  /// After so many decisions no depth was found to be worth a change.
  std::optional<std::size_t> deep_after_;
  double seconds_ = 0;
  std::string rests_;
};

}  // namespace penstock
