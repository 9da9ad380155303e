#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "penstock/base/clock.h"
#include "penstock/base/sync.h"
#include "penstock/exec/durations.h"
#include "penstock/exec/sightings.h"
#include "penstock/exec/spans.h"

namespace penstock {

/// What a stage does with rows. What can be said about a stage depends on this,
/// never on its name, which is for people.
enum class StageWork : std::uint8_t {
  other,             ///< none of these: planning, mapping, delivering
  reads,             ///< gets rows from their source, many at a time
  reads_per_sample,  ///< gets each row from the source by itself
  parses,            ///< turns what was read into values
  makes,             ///< puts parsed rows into a batch
  gathers,           ///< puts rows that are kept into a batch
  on_device,  ///< queues what a device does with a batch, or waits for room
              ///< there
};

/// What a stage has done so far. Times are summed over its workers.
struct StageNumbers {
  std::string name;
  StageWork work = StageWork::other;
  int workers = 0;  ///< threads; 0: it is done on the consumer's own thread
  /// Stages of one pool are done by the same threads, one after the other, and
  /// name the same number of workers. Empty: threads of its own.
  std::string pool;
  std::int64_t items = 0;    ///< rows
  std::int64_t calls = 0;    ///< statements sent, where there are any
  Nanoseconds busy_wall{0};  ///< working, by the wall clock
  /// Working, by the threads' CPU clocks: never more than `busy_wall`. Of short
  /// scopes it is an estimate.
  Nanoseconds busy_cpu{0};
  std::optional<Nanoseconds> blocked_get;  ///< for input; if ever measured
  std::optional<Nanoseconds> blocked_put;  ///< for room; if ever measured
  std::int64_t bytes = 0;                  ///< produced
  Durations times;                         ///< that each piece of work took
  ThreadSightings seen;  ///< of its threads at work, where they are looked at
  int places = 0;        ///< of a queue behind it, in items; 0: it has none
};

/// Counts for one stage. Thread-safe and cheap: relaxed atomics, because each
/// number is only ever added to and read as a statistic. A thread's CPU clock
/// is a system call, of 0.7 us on a virtual machine, and the wall clock takes
/// its time, too: the shorter scopes are, the fewer of them read these, and
/// each that does counts for the others.
class StageMeter {
 public:
  StageMeter(std::string name, int workers, std::string pool = "",
             StageWork work = StageWork::other)
      : name_(std::move(name)),
        work_(work),
        workers_(workers),
        pool_(std::move(pool)) {}

  void add_items(std::int64_t items, std::int64_t bytes) {
    items_.fetch_add(items, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void add_calls(std::int64_t calls) {
    calls_.fetch_add(calls, std::memory_order_relaxed);
  }
  /// How many scopes one stands for, by each clock; 0: another one stands for
  /// it, and that clock need not be read.
  struct Weight {
    int wall = 1;
    int cpu = 1;  ///< 0 where `wall` is
  };
  /// A scope of `wall`, of which `cpu` on a processor.
  void add_busy(Nanoseconds wall, Nanoseconds cpu, Weight weight = {1, 1}) {
    busy_wall_.fetch_add(weight.wall * wall.count(), std::memory_order_relaxed);
    if (cpu.count() != 0)
      busy_cpu_.fetch_add(weight.cpu * cpu.count(), std::memory_order_relaxed);
    times_.add(wall, weight.wall);
  }
  /// Of the scope that begins now. Throws nothing.
  Weight weight() {
    // Threads that count at the same moment may count one: that is no loss.
    const std::int64_t scope = scopes_.load(std::memory_order_relaxed);
    scopes_.store(scope + 1, std::memory_order_relaxed);
    if (scope < kAllMeasured) return {1, 1};
    if (scope % kAllMeasured == 0) find_stride(scope);
    const int doublings = doublings_.load(std::memory_order_relaxed);
    if (doublings == 0) return {1, 1};
    // Multiples of the golden ratio: evenly spread, and in no step with work
    // that repeats itself.
    const std::uint64_t place =
        static_cast<std::uint64_t>(scope) * 0x9E3779B97F4A7C15u;
    auto stands_for = [place](int times) {  // 2^times scopes
      return times == 0 || place >> (64 - times) == 0 ? 1 << times : 0;
    };
    return {stands_for(std::max(0, doublings - kFewerCpu)),
            stands_for(doublings)};
  }
  /// Whether its scopes take so long, on average, that to look at their threads
  /// costs nothing beside them. What was seen of the first ones is not told
  /// where it is not so: it says nothing of the others.
  bool takes_long() const {
    return scopes_.load(std::memory_order_relaxed) < kAllMeasured ||
           doublings_.load(std::memory_order_relaxed) <= kLongDoublings;
  }
  void add_seen(const ThreadSightings& seen) {
    if (seen.looks == 0) return;
    Lock lock(seeing_);
    seen_ += seen;
  }
  std::int64_t items() const { return items_.load(std::memory_order_relaxed); }
  void add_blocked_get(Nanoseconds time) { blocked_get_.add(time); }
  void add_blocked_put(Nanoseconds time) { blocked_put_.add(time); }
  StageNumbers numbers() const;
  const std::string& name() const { return name_; }

  /// Scopes that take longer, on average, read the CPU clock each time; of
  /// those that take 1/2^n of it, one in 2^n does. The wall clock is read
  /// 2^kFewerCpu times as often, so that from 32 us on each is.
  static constexpr Nanoseconds kLongScope{250'000};
  static constexpr int kMostDoublings = 7;
  static constexpr int kFewerCpu = 3;
  static constexpr std::int64_t kAllMeasured = 128;  // the first ones

 private:
  static constexpr int kLongDoublings = 2;  // of 63 us or more

  ThreadSightings seen() const;
  void find_stride(std::int64_t scopes) {
    const std::int64_t busy = busy_wall_.load(std::memory_order_relaxed);
    const auto times = static_cast<std::uint64_t>(
        scopes * kLongScope.count() / std::max<std::int64_t>(1, busy));
    doublings_.store(
        std::min(static_cast<int>(std::bit_width(times)), kMostDoublings),
        std::memory_order_relaxed);
  }
  /// A time that is unknown until something was added, even zero.
  class Blocked {
   public:
    void add(Nanoseconds time) {
      time_.fetch_add(time.count(), std::memory_order_relaxed);
      measured_.store(true, std::memory_order_relaxed);
    }
    std::optional<Nanoseconds> value() const;

   private:
    std::atomic<std::int64_t> time_{0};
    std::atomic<bool> measured_{false};
  };

  const std::string name_;
  const StageWork work_;
  const int workers_;
  const std::string pool_;
  // What every batch counts, in one line of the caches.
  alignas(64) std::atomic<std::int64_t> items_{0};
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::int64_t> scopes_{0};
  std::atomic<int> doublings_{0};
  std::atomic<std::int64_t> busy_wall_{0};
  std::atomic<std::int64_t> busy_cpu_{0};
  std::atomic<std::int64_t> calls_{0};
  DurationMeter times_;
  Blocked blocked_get_;
  Blocked blocked_put_;
  mutable Mutex seeing_;
  ThreadSightings seen_ PENSTOCK_GUARDED_BY(seeing_);
};

/// Adds the time of a scope to a meter's busy numbers, and tells those who
/// listen to spans of it.
class BusyScope {
 public:
  explicit BusyScope(StageMeter& meter)
      : meter_(meter), weight_(meter.weight()), heard_(spans::heard()) {
    if (weight_.wall > 0 || heard_) wall_ = wall_clock().now();
    if (weight_.cpu > 0) cpu_ = thread_cpu_time();
    if (heard_) spans::tell_begin(meter_.name());
  }
  ~BusyScope() {
    if (weight_.wall == 0 && !heard_) return;
    const Nanoseconds end = wall_clock().now();
    if (weight_.wall > 0) {
      const Nanoseconds cpu =
          weight_.cpu > 0 ? thread_cpu_time() - cpu_ : Nanoseconds(0);
      meter_.add_busy(end - wall_, cpu, weight_);
    }
    if (heard_)
      spans::tell({.name = meter_.name(), .begin = wall_, .end = end});
  }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  StageMeter& meter_;
  const StageMeter::Weight weight_;
  const bool heard_;  ///< from its begin on
  Nanoseconds wall_{0}, cpu_{0};
};

}  // namespace penstock
