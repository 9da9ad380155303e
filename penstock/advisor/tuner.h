#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "penstock/advisor/water_filling.h"
#include "penstock/base/json.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// A number that may be changed while a run is running.
struct Knob {
  std::string name;  ///< a key of the job, or `STAGE.workers`
  /// The pool of threads that it sets, or the stage without a pool; empty: it
  /// sets how many batches may lie ready.
  std::string pool;
  int value = 1;
  int least = 1;
  int most = 1;
};

/// One knob, set to something else.
struct KnobChange {
  std::string knob;
  int from = 0, to = 0;
};

/// One change that was made, and what became of it.
struct Decision {
  std::int64_t window = 0;  ///< after which it was made; the first is 1
  double at_s = 0;          ///< the sum of the windows' wall times up to then
  std::string knob;
  int from = 0, to = 0;
  /// What was set at the same time, since neither helps alone: it is judged,
  /// kept or undone with the other.
  std::optional<KnobChange> also;
  std::string reason;
  double predicted_gain = 0;            ///< of the rate, by this and the next
  std::optional<double> measured_gain;  ///< of this one; none: not yet known
  bool undone = false;

  /// One, or both.
  std::vector<KnobChange> changes() const;
  /// Threads left one pool for another.
  bool moves() const;
  /// "loader.readers 4 -> 8, loader.prefetch 2 -> 8".
  std::string text() const;
  Json json() const;
};

/// Sets the knobs of an input pipeline by what its meters measured.
///
///     Tuner tuner({.cpus = 8}, knobs);
///     if (std::optional<Decision> made = tuner.next(window))
///       for (const KnobChange& change : made->changes())
///         set(change.knob, change.to);
///
/// Threads are set by water-filling: from the fewest on, the pool with the
/// lowest rate gets one more until each is kAhead times as fast as the steps or
/// the budget is used up. That is the aim; each call makes one change towards
/// it, at most a doubling of threads, which come from another pool where the
/// budget is used up. A change is judged by the next window: by the changed
/// pool's own rate, since another pool may be the limit by then. One that does
/// not pay is undone and not tried again for kFrozen windows, then twice as
/// many.
///
/// How many reads are under way is bounded by the threads and by the batches
/// that may lie ready, times the requests that each is read in: where more
/// threads would find no work in those, both are raised as one change. More
/// batches alone are for where each pool is fast enough, and the loop waits all
/// the same, or where the threads of no pool are at work all the time.
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
    double rate = 0;       ///< samples per second, before the change
    double pool_rate = 0;  ///< of the changed pool
    double waits = 0;      ///< share of the wall time
    double doubted = 0;    ///< the rate in a window that was not clear
  };
  struct Place;
  std::vector<Place> places_in(const Snapshot& window);
  double gain_of(const Snapshot& window, const std::vector<Place>& places,
                 const Place& slow, int threads, const Place* giver) const;
  int affordable(const std::vector<Place>& places, const Place& slow,
                 const Place* giver) const;
  std::optional<Decision> judge(const Snapshot& window);
  std::optional<Decision> undo(double rate);
  void take_back();
  std::optional<Decision> hurry(const Snapshot& window);
  std::optional<Decision> deepen(const Snapshot& window);
  std::optional<Decision> relax(const Snapshot& window);
  std::map<std::string, int> fill(const Snapshot& window);
  Decision change(const Snapshot& window, KnobChange main,
                  std::optional<KnobChange> also, std::string reason,
                  double gain);
  bool frozen(const Knob& knob) const;
  Knob& named(const std::string& knob);
  /// The knob that sets a pool's threads; null where none does.
  const Knob* of_pool(const std::string& pool) const;
  /// That of how many batches may lie ready; null where none sets it.
  const Knob* depth() const;
  /// Threads of a pool that find work at once, at most.
  int most_at_work(const Snapshot& window) const;
  /// More batches ahead, for so many threads to find work; none: they do.
  std::optional<KnobChange> room_for(const Snapshot& window, int threads) const;

  const TunerBudget budget_;
  std::vector<Knob> knobs_;
  std::vector<Decision> decisions_;
  std::map<std::string, Freeze> frozen_;
  std::optional<Pending> pending_;
  std::int64_t windows_ = 0, calm_ = 0;
  std::int64_t deep_again_ = 0;  ///< no depth was worth a change until then
  double seconds_ = 0;
  std::string rests_;
};

}  // namespace penstock
