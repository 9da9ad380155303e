#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/device/device.h"

namespace penstock {

/// Where the wall time of steps went; the parts sum to `wall`.
struct StepParts {
  std::int64_t steps = 0;
  std::int64_t samples = 0;  ///< that these steps consumed
  Nanoseconds wall{0};
  Nanoseconds compute{0};    ///< the device worked on a step
  Nanoseconds wait_data{0};  ///< idle because no batch was there
  Nanoseconds wait_copy{0};  ///< idle because a batch was still on its way
  Nanoseconds host{0};       ///< idle because the host had queued nothing
  Nanoseconds sync{0};       ///< in waits among ranks
  /// Steps after which the device had nothing left to do when the host came for
  /// the next batch. Between their kernels it may have waited for the host:
  /// `compute` covers such gaps.
  std::int64_t drained = 0;

  /// False when no step was timed or a step computes for less than 5 us on
  /// average. That is the cost of recording the events, and less than any
  /// kernel takes: there was no work that an input could keep waiting.
  bool steps_take_time() const;
  /// Accelerator utilisation: compute / wall; NaN when no time passed. Means
  /// nothing where steps take no time.
  double utilisation() const;
  StepParts& operator+=(const StepParts& other);
  StepParts operator-(const StepParts& earlier) const;
};

/// A step that took long, to be looked at.
struct SlowStep {
  std::int64_t group = 0;    ///< as group() labelled it
  std::int64_t number = -1;  ///< and numbered it; -1: timed elsewhere
  StepParts parts;
};

/// Splits wall time by three events per step on the consumer's stream: before
/// the wait for the input (W), after it (S), after the last kernel (F).
///
/// Between F of one step and W of the next nothing was queued: the part of
/// that in which the host waited for a batch is wait_data, the rest is host;
/// W to S is wait_copy, S to F compute. The first step only starts the clock:
/// time runs from the end of the first step to the end of the last.
/// One thread. Never waits for the device but in finish().
class StepClock {
 public:
  explicit StepClock(Clock& clock) : clock_(&clock) {}

  /// Before and after the host requests the next batch. The second is also
  /// before_wait(): where the stream is never behind, one look at the clock.
  void ask();
  void got(Stream& stream);
  /// ask() right behind after_step(), which looked at the clock: at most once
  /// for each step.
  void ask_at_once();
  /// Around the stream's wait for the batch, then after the step. The first
  /// where the host did something else since got().
  void before_wait(Stream& stream);
  void after_wait(Stream& stream);
  void after_step(Stream& stream);
  /// Time between here and the next ask() is left out: validation and
  /// checkpoints. Waits for the steps before it.
  void pause();
  /// A step that was timed elsewhere.
  void add(const StepParts& step, std::int64_t label);
  /// Waits for all steps.
  void finish();

  /// Labels the steps from here on, by epoch for example, and says how many
  /// samples each consumes. `number`: of the next step alone, by which it is
  /// known among the slowest.
  void group(std::int64_t label, std::int64_t samples = 0,
             std::int64_t number = -1) {
    group_ = label;
    samples_ = samples;
    number_ = number;
  }
  /// Sums over all steps that are known to have ended.
  const StepParts& total();
  /// The same by label. A label's first step carries the seam before it.
  const std::map<std::int64_t, StepParts>& by_group();
  /// The steps that took longest, at most kSlowest, the slowest first.
  const std::vector<SlowStep>& slowest();
  static constexpr std::size_t kSlowest = 10;
  /// The sums of that label are not needed any more.
  void forget(std::int64_t label);

 private:
  struct Step {
    Nanoseconds asked{0}, got{0}, queued{0};
    Event before_wait, after_wait, after_step;
    std::int64_t group = 0, samples = 0, number = -1;
    bool starts_clock = false;
  };
  void account(const Step& step);
  void add(const StepParts& step, std::int64_t label, std::int64_t number);
  void sum_up_group();
  void collect(bool wait);
  void ask(Nanoseconds now);

  Clock* clock_;
  Step current_;
  std::deque<Step> pending_;
  bool starts_clock_ = true;
  bool paused_ = false;
  Nanoseconds last_end_{0};
  /// When the newest step was; none once the next batch is asked for.
  std::optional<Nanoseconds> queued_;
  std::int64_t group_ = 0, samples_ = 0, number_ = -1;
  StepParts total_;
  std::map<std::int64_t, StepParts> by_group_;
  StepParts summed_up_;     // of total_, in by_group_; the rest is of the
  std::int64_t label_ = 0;  // label of the newest step
  std::vector<SlowStep> slowest_;
};

}  // namespace penstock
