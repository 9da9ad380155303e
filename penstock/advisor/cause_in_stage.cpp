#include "penstock/advisor/cause_in_stage.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "penstock/advisor/pools.h"
#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr double kOnProcessor = 0.8;  // of its busy time, on a processor
constexpr double kWaitsFor = 0.3;     // below that it waits for something
constexpr double kThrottled = 0.1;    // of the wall time
constexpr double kGotEnough = 0.7;    // of the time its threads could run: less
constexpr double kSlowPiece = 10;     // times the median: a piece stands out
constexpr double kSlowPiecesShare =
    0.2;                                 // of the work, by those that stand out
constexpr double kFewSlowPieces = 0.05;  // of the rows
constexpr std::int64_t kFewestPieces = 20;
constexpr int kFewestSlow = 3;  // readings of the clock
constexpr Nanoseconds kShortestSlow = std::chrono::milliseconds(1);
constexpr double kOneAtATime[] = {0.7, 1.15};  // processors, of all its threads
constexpr std::int64_t kFewestLooks = 10;      // that tell something
constexpr double kInLock = 0.4;     // of those that one lock would keep
constexpr double kOfWaiting = 0.8;  // of what one lock would keep, or more
constexpr double kMostly = 0.5;     // of looks

bool row_by_row(const StageNumbers& stage) {
  return stage.calls > 0 && static_cast<double>(stage.items) <
                                1.5 * static_cast<double>(stage.calls);
}

int threads_in(const Snapshot& window) {
  int all = 0;
  for (const Pool& pool : pools_of(window.stages))
    if (!std::isinf(pool.rate())) all += pool.workers;  // it did something
  return all;
}

/// Seconds of each second in which the cgroup's quota let none of us run, of
/// all processors together.
double throttled(const Snapshot& window) {
  return 1e-6 * static_cast<double>(window.use.throttled_us.value_or(0)) /
         seconds(window.parts.wall);
}

/// Of the time in which threads of this process could run, the share in which
/// they did; 1 where that is unknown.
double got_processors(const Snapshot& window) {
  const double ran = window.use.cpu_seconds.value_or(0);
  const double queued = window.use.queued_seconds.value_or(0);
  return ran > 0 ? ran / (ran + queued) : 1;
}

/// What limits its processors is a cgroup's, and stopped it now and then.
bool has_quota(const Snapshot& window) {
  return window.limits.cpus_origin.starts_with("/") && throttled(window) > 0;
}

std::optional<std::string> stopped_by_quota(const Snapshot& window) {
  const double cpus = window.limits.cpus, stopped = throttled(window);
  if (processors_in_use(window) <= 0.5 * cpus || stopped <= kThrottled)
    return std::nullopt;
  return formatted(
      " needs more processor time than the quota of %.3g processors allows: "
      "its threads were stopped for %.2g s of every second, summed over "
      "processors",
      cpus, stopped);
}

/// While others have the processors, a thread's share of its busy time is low,
/// as if it waited for an answer.
std::optional<std::string> lacks_processors(const Snapshot& window,
                                            const StageNumbers& stage) {
  const double u = cpu_share(stage);
  const double cpus = window.limits.cpus, used = processors_in_use(window);
  const double got = got_processors(window);
  if (u <= kOnProcessor && used > 0.8 * cpus && has_quota(window))
    return formatted(
        " needs more processor time than the quota of %.3g processors allows: "
        "the quota is used up, and %d threads share it",
        cpus, threads_in(window));
  if (u <= kOnProcessor && used > 0.8 * cpus)
    return formatted(
        " needs more processor time: all %.3g processors are in use, and %d "
        "threads share them",
        cpus, threads_in(window));
  if (got < kGotEnough && u > kOnProcessor * got)
    return formatted(
        " needs more processor time: other programs use this machine, and its "
        "threads got a processor for %.0f %% of the time in which they could "
        "run (%.2g of %.3g processors)",
        100 * got, used, cpus);
  return std::nullopt;
}

bool waits_for_storage(const Snapshot& window, const StageNumbers& stage) {
  return stage.bytes > 0 && reads_source(stage) &&
         static_cast<double>(window.use.read_bytes.value_or(0)) >
             0.5 * static_cast<double>(stage.bytes);
}

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// How often its threads were seen in a lock. One lock that is always held
/// keeps all threads but one; one that another part of the program holds keeps
/// all.
double looks_in_lock(const StageNumbers& stage) {
  return share_of(stage.seen.in_locks(), stage.seen.total());
}
bool seen_in_lock(const StageNumbers& stage) {
  const double kept = stage.workers < 2 ? 1 : 1 - 1.0 / stage.workers;
  return stage.seen.looks >= kFewestLooks &&
         looks_in_lock(stage) >= kInLock * kept &&
         share_of(stage.seen.in_locks(), stage.seen.waiting()) >=
             kOfWaiting * kept;
}

/// More of them at a time than where one of them holds the lock.
bool others_hold_lock(const StageNumbers& stage) {
  return stage.workers < 2 || looks_in_lock(stage) > 1 - 0.5 / stage.workers;
}

/// That it uses on the average while all of its threads are busy.
double processors_of(const StageNumbers& stage) {
  return cpu_share(stage) * stage.workers;
}

/// Those who were not in the lock worked, and had a processor or wanted one.
bool computes_in_lock(const StageNumbers& stage) {
  return share_of(stage.seen.running,
                  stage.seen.total() - stage.seen.in_locks()) >= kMostly;
}

std::string others_work(const Snapshot& window) {
  const double got = got_processors(window);
  if (got >= kGotEnough) return {};
  return formatted(
      "; other programs use this machine too: its threads got a processor for "
      "%.0f %% of the time in which they could run",
      100 * got);
}

/// A lock that its threads were seen in, and what is done under it.
std::optional<std::string> waits_for_lock(const Snapshot& window,
                                          const StageNumbers& stage) {
  if (!seen_in_lock(stage)) return std::nullopt;
  const double looks = 100 * looks_in_lock(stage);
  if (takes_turns(window, stage))
    return formatted(
               " runs only one of its %d threads at a time: in %.0f %% of the "
               "samples the others waited for one lock, such as Python's "
               "global interpreter lock or a lock in a library that it uses",
               stage.workers, looks) +
           others_work(window);
  const bool others = others_hold_lock(stage);
  if (processors_of(stage) > kOneAtATime[1] && computes_in_lock(stage))
    return std::nullopt;
  const std::string whose =
      others ? std::string(
                   "another thread's result, or for a lock that another thread "
                   "or program holds")
             : formatted("a lock that its %d threads share", stage.workers);
  return " waits for " + whose +
         formatted(
             ": it waited so in %.0f %% of the samples, and was on a processor "
             "in %.0f %%",
             looks, 100 * share_of(stage.seen.running, stage.seen.total()));
}

/// Where most looks found its threads waiting for the same.
std::optional<std::string> seen_waiting(const StageNumbers& stage) {
  const ThreadSightings& seen = stage.seen;
  if (seen.looks_waiting() < kFewestLooks) return std::nullopt;
  const auto mostly = [&](std::int64_t looks) {
    return share_of(looks, seen.waiting()) >= kMostly;
  };
  const char* what = mostly(seen.asleep)       ? "it sleeps"
                     : mostly(seen.in_network) ? "it waits for the network"
                     : mostly(seen.in_file)    ? "it waits for storage"
                     : mostly(seen.in_locks())
                         ? "it waits for a lock, or for another thread"
                         : nullptr;
  if (what == nullptr) return std::nullopt;
  return formatted(" is on a processor for %.0f %% of its time: ",
                   100 * cpu_share(stage)) +
         what;
}

/// Pieces that one reading of the clock stood for at most, where most of them
/// take so long: of short ones not each is timed (StageMeter). By the median,
/// since a mean rises with what one reading has found.
double pieces_of_reading(std::int64_t count, Nanoseconds median) {
  if (count <= StageMeter::kAllMeasured) return 1;
  const auto times = static_cast<unsigned>(StageMeter::kLongScope /
                                           std::max(median, Nanoseconds(1)));
  const int doublings = std::min(static_cast<int>(std::bit_width(times)),
                                 StageMeter::kMostDoublings);
  return std::exp2(std::max(0, doublings - StageMeter::kFewerCpu));
}

std::string waits_for(const StageNumbers& stage) {
  const auto calls = static_cast<double>(stage.calls);
  if (stage.calls > 0)
    return formatted(
        " waits for the database: %.0f rows per statement, %.2f ms each",
        static_cast<double>(stage.items) / calls,
        1e3 * seconds(stage.busy_wall) / calls);
  if (stage.work == StageWork::on_device) return " is the slowest stage";
  if (auto seen = seen_waiting(stage)) return *seen;
  return formatted(
             " is on a processor for only %.0f %% of its time, and the cause "
             "of its waiting was not measured: it may wait for ",
             100 * cpu_share(stage)) +
         (stage.workers > 1
              ? formatted("a lock that its %d threads share, ", stage.workers)
              : std::string("a lock, ")) +
         "the network, or sleep";
}

}  // namespace

double cpu_share(const StageNumbers& stage) {
  double busy = seconds(stage.busy_wall);
  return busy <= 0 ? 0 : seconds(stage.busy_cpu) / busy;
}

bool reads_source(const StageNumbers& stage) {
  return stage.work == StageWork::reads ||
         stage.work == StageWork::reads_per_sample ||
         stage.work == StageWork::parses || stage.work == StageWork::makes;
}

bool makes_batches(StageWork work) {
  return work == StageWork::makes || work == StageWork::gathers;
}

double processors_in_use(const Snapshot& window) {
  return processor_s(window.stages) / seconds(window.parts.wall);
}

std::optional<std::string> single_pieces(const StageNumbers& stage) {
  const std::int64_t count = stage.times.count();
  if (count < kFewestPieces) return std::nullopt;
  const Nanoseconds middle = *stage.times.quantile(0.5);
  const double median = seconds(middle);
  const std::int64_t looks = std::min<std::int64_t>(count, 1000);
  double all = 0, slow = 0, slow_looks = 0;
  for (std::int64_t i = 0; i < looks; ++i) {
    const double share =
        (static_cast<double>(i) + 0.5) / static_cast<double>(looks);
    const double took = seconds(*stage.times.quantile(share));
    all += took;
    if (took <= kSlowPiece * median) continue;
    slow += took;
    ++slow_looks;
  }
  const auto rows = static_cast<double>(std::max(stage.items, count));
  const Nanoseconds longest = *stage.times.quantile(1);
  const double slow_pieces =
      slow_looks * static_cast<double>(count) / static_cast<double>(looks);
  const double readings = slow_pieces / pieces_of_reading(count, middle);
  // The first of each thread opens what it reads.
  if (longest < kShortestSlow || slow < kSlowPiecesShare * all ||
      readings < std::max(kFewestSlow, 2 * stage.workers) ||
      slow_pieces > kFewSlowPieces * rows)
    return std::nullopt;
  return formatted(
      "one in %.0f pieces of work of '%s' takes more than ten times the median "
      "of %.3g ms (one row in %.0f; the longest takes %.0f ms), and later "
      "pieces wait for it: the list of the longest steps names the samples",
      static_cast<double>(count) / slow_pieces, stage.name.c_str(),
      1e3 * median, rows / slow_pieces, 1e3 * seconds(longest));
}

bool takes_turns(const Snapshot& window, const StageNumbers& stage) {
  if (stage.workers < 2 || stage.calls > 0 ||
      stage.work == StageWork::on_device || waits_for_storage(window, stage))
    return false;
  const double used = processors_of(stage);
  const double got = got_processors(window);
  // What was seen says more than what others left of the processors.
  if (stage.seen.looks >= kFewestLooks)
    return seen_in_lock(stage) && computes_in_lock(stage) &&
           used >= kOneAtATime[0] * got && used <= kOneAtATime[1];
  if (got < kGotEnough) return false;
  return cpu_share(stage) <= kOnProcessor && used >= kOneAtATime[0] &&
         used <= kOneAtATime[1];
}

bool shares_lock(const Snapshot& window, const StageNumbers& stage) {
  return takes_turns(window, stage) ||
         (seen_in_lock(stage) && !others_hold_lock(stage) &&
          processors_of(stage) <= kOneAtATime[1]);
}

bool waits_for_others(const StageNumbers& stage) {
  return stage.seen.looks >= kFewestLooks &&
         share_of(stage.seen.waiting(), stage.seen.total()) >= kMostly &&
         (!seen_in_lock(stage) || others_hold_lock(stage));
}

std::string cause_in_stage(const Snapshot& window, const StageNumbers& stage) {
  const std::string name = "'" + stage.name + "'";
  const double u = cpu_share(stage);
  if (row_by_row(stage))
    return formatted(
        "the database is queried once per sample, which takes %.2f ms each "
        "time",
        1e3 * seconds(stage.busy_wall) / static_cast<double>(stage.calls));
  if (auto stopped = stopped_by_quota(window)) return name + *stopped;
  // Where its threads wait for one lock, they could not use the processors that
  // others have.
  if (auto lock = waits_for_lock(window, stage)) return name + *lock;
  if (auto lack = lacks_processors(window, stage)) return name + *lack;
  // What is read ahead comes in bursts: before single pieces are looked for.
  if (u < kWaitsFor && waits_for_storage(window, stage))
    return name + formatted(" waits for storage: %.1f MB/s came from drives",
                            1e-6 * static_cast<double>(*window.use.read_bytes) /
                                seconds(window.parts.wall));
  if (auto slow = single_pieces(stage)) return *slow;
  if (u > kOnProcessor) return name + " needs more processor time";
  if (takes_turns(window, stage))
    return name +
           formatted(
               " has only one of its %d threads on a processor at a time, as "
               "if they waited for one lock, such as Python's global "
               "interpreter lock or a lock in a library that it uses",
               stage.workers);
  if (u < kWaitsFor) return name + waits_for(stage);
  return name + " is the slowest stage";
}

}  // namespace penstock
