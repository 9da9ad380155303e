#include "penstock/advisor/offers.h"

#include <algorithm>
#include <cmath>

#include "penstock/advisor/cause_in_stage.h"
#include "penstock/advisor/gain.h"
#include "penstock/advisor/little_memory.h"
#include "penstock/advisor/thresholds.h"
#include "penstock/advisor/window_rates.h"
#include "penstock/base/formatted.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

/// `loader.read: "per_sample"`, which is always done on the consumer's thread.
bool reads_per_sample(const StageNumbers& stage) {
  return stage.work == StageWork::reads_per_sample;
}

/// The window's stages, with so many threads in the pool.
std::vector<StageNumbers> with_threads(const Snapshot& window, const Pool& pool,
                                       int threads) {
  std::vector<StageNumbers> stages = window.stages;
  for (StageNumbers& stage : stages)
    if (pool.name.empty() ? stage.name == pool.stages.front().name
                          : stage.pool == pool.name)
      stage.workers = threads;
  return stages;
}

/// What a statement per row waited for is paid once per batch.
std::vector<StageNumbers> read_by_batch(const Snapshot& window) {
  const double rows = static_cast<double>(window.parts.samples) /
                      static_cast<double>(window.parts.steps);
  std::vector<StageNumbers> stages = window.stages;
  for (StageNumbers& stage : stages) {
    if (!reads_per_sample(stage)) continue;
    const Nanoseconds waited = stage.busy_wall - stage.busy_cpu;
    stage.busy_wall =
        stage.busy_cpu + from_seconds(seconds(waited) / std::max(1.0, rows));
  }
  return stages;
}

std::string memory_of(const TierCapacity& tier) {
  return "memory for the prepared rows" +
         (tier.lacks_budget.empty() ? ""
                                    : " beyond '" + tier.lacks_budget + "'");
}

/// For the source: that needs no processor.
bool wait(const Pool& readers) { return cpu_share(readers.busiest()) < 0.5; }

LoaderThreads threads_in(const Snapshot& window, int readers) {
  LoaderThreads threads{
      .workers = 0, .readers = readers, .prefetch = window.prefetch};
  for (const StageNumbers& stage : window.stages)
    if (stage.pool == "loader")
      threads.workers = std::max(threads.workers, stage.workers);
  return threads;
}

/// How many times as many parts a batch is read in with so many readers, unless
/// these are as small as they may be. Where each waits, that is how much longer
/// its rows take.
double smaller_parts(const Snapshot& window, int readers, int to) {
  const std::optional<double> requests = requests_per_batch(window);
  const int now = parts_of_batch(threads_in(window, readers));
  if (!requests || *requests < now - 0.5) return 1;
  const int then = parts_of_batch(threads_in(window, to));
  return std::max(1.0, static_cast<double>(then) / now);
}

/// Batches ahead bound how many requests are under way.
std::string cost_of_reader(const Snapshot& window, int readers) {
  std::string cost = "one more connection or open file";
  const std::optional<double> requests = requests_per_batch(window);
  if (requests && window.prefetch > 0 && readers > *requests * window.prefetch)
    cost += formatted(
        ", and 'loader.prefetch' at %.0f, since it would have no work "
        "otherwise",
        std::ceil(readers / *requests));
  return cost;
}

std::optional<Action> add_reader(const Snapshot& window, const Pool& readers) {
  const bool waits = wait(readers);
  if (!waits && readers.workers >= window.limits.cpus) return std::nullopt;
  const int to = readers.workers + 1;
  std::vector<StageNumbers> then = with_threads(window, readers, to);
  const double longer = waits ? smaller_parts(window, readers.workers, to) : 1;
  if (to < (1 + kSmallestGain) * longer * readers.workers) return std::nullopt;
  for (StageNumbers& stage : then)
    if (stage.pool == readers.name)
      stage.busy_wall = from_seconds(seconds(stage.busy_wall) * longer);
  return worth_it({.knob = "loader.readers",
                   .from = readers.workers,
                   .to = to,
                   .predicted_gain = gain(window, then),
                   .cost = cost_of_reader(window, to)});
}

std::string cost_of_workers(const Snapshot& window, int from, int to,
                            bool wait) {
  if (wait) return "one more thread, which mostly waits";
  std::string cost =
      to == from + 1 ? "one more processor" : "two more processors";
  if (from == 0) cost += ", and 'loader.prefetch' above 0";
  if (window.loader_cpus > 0 && to > window.loader_cpus)
    cost += formatted(", and 'loader.cpus' at %d, which is %d now", to,
                      window.loader_cpus);
  return cost;
}

}  // namespace

TierChoice tiers_in(const Snapshot& window) {
  const std::vector<TierCapacity>& all = window.tiers;
  const auto slowest =
      std::ranges::find_if(all.rbegin(), all.rend(), &TierCapacity::in_use);
  if (slowest == all.rend()) return {};
  TierChoice tiers;
  for (const TierCapacity& tier : all)
    if (tier.in_use) tiers.used += (tiers.used.empty() ? "" : ", ") + tier.name;
  for (const TierCapacity& tier : all) {
    if (&tier == &*slowest) break;
    const bool could = tier.fits || !tier.lacks_budget.empty();
    if (could && tiers.faster == nullptr) tiers.faster = &tier;
    if (!tier.fits)
      tiers.no_room +=
          (tiers.no_room.empty() ? "'" : "; '") + tier.name + "' " + tier.why;
  }
  if (tiers.faster != nullptr && tiers.faster->fits) tiers.no_room.clear();
  if (!tiers.no_room.empty())
    tiers.no_room = (tiers.faster != nullptr ? "; with the present budgets, "
                                             : "; no faster tier has room: ") +
                    tiers.no_room;
  return tiers;
}

std::optional<Action> keep_rows(const Snapshot& window, const TierChoice& tiers,
                                const Pool& slowest) {
  if (std::ranges::none_of(slowest.stages, reads_source)) return std::nullopt;
  std::vector<StageNumbers> kept = window.stages;
  std::erase_if(kept, reads_source);
  if (std::ranges::none_of(slowest.stages, reads_per_sample)) {
    if (tiers.faster == nullptr) return std::nullopt;
    return worth_it(
        {.knob = "loader.cache",
         .from = tiers.used,
         .to = "auto",
         .predicted_gain = gain(window, kept),
         .cost = memory_of(*tiers.faster) + ", and one pass to fill it"});
  }
  const bool has_room = tiers.faster != nullptr && tiers.faster->fits;
  return worth_it(
      {.knob = "loader.read",
       .from = "per_sample",
       .to = "batch",
       .predicted_gain = gain(window, has_room ? kept : read_by_batch(window)),
       .cost = has_room ? "memory for the prepared rows, which "
                          "\"loader.cache\": \"auto\" then keeps"
                        : "memory for the rows of one statement"});
}

std::optional<Action> keep_on_device(const Snapshot& window,
                                     const TierChoice& tiers) {
  if (tiers.faster == nullptr || tiers.faster->name != "device")
    return std::nullopt;
  return worth_it({.knob = "loader.cache",
                   .from = tiers.used,
                   .to = "device",
                   .predicted_gain = gain(window, {}),
                   .cost = "device " + memory_of(*tiers.faster)});
}

std::optional<Action> keep_off_device(const Snapshot& window) {
  std::optional<Action> leave = rows_off_device(window);
  if (!window.spilled || !leave) return std::nullopt;
  leave->predicted_gain =
      gain(window, window.stages,
           compute_before(window) + seconds(window.parts.host));
  return worth_it(std::move(*leave));
}

std::optional<Action> add_threads(const Snapshot& window, const Pool& slowest) {
  const StageNumbers& busiest = slowest.busiest();
  if (std::ranges::any_of(slowest.stages, reads_per_sample) ||
      shares_lock(window, busiest) || slowest.name == "all readers")
    return std::nullopt;  // more would gain nothing
  if (busiest.work == StageWork::on_device && cpu_share(busiest) < 0.5)
    return std::nullopt;  // they wait for the device
  if (slowest.name == "readers") return add_reader(window, slowest);
  // A first worker may only take over what the consumer's thread did while
  // the accelerator was busy; then it takes two to gain anything.
  const int from = slowest.workers, most = from == 0 ? 2 : from + 1;
  const bool wait = from > 0 && waits_for_others(busiest);
  for (int to = from + 1; to <= most; ++to) {
    if (to > window.limits.cpus && !wait) return std::nullopt;
    std::optional<Action> more = worth_it(
        {.knob = "loader.workers",
         .from = from,
         .to = to,
         .predicted_gain = gain(window, with_threads(window, slowest, to)),
         .cost = cost_of_workers(window, from, to, wait)});
    if (more) return more;
  }
  return std::nullopt;
}

std::string instead_of_reader(const Snapshot& window, const Pool& slowest) {
  const int readers = slowest.workers;
  if (slowest.name != "readers" || !wait(slowest) ||
      smaller_parts(window, readers, readers + 1) == 1)
    return {};
  LoaderThreads threads = threads_in(window, readers);
  threads.prefetch = std::max(1, threads.prefetch);
  const int parts = parts_of_batch(threads);
  do {
    threads.prefetch *= 2;
  } while (parts > 1 && parts_of_batch(threads) == parts);
  return "another reader would only read smaller parts of a batch; a distant "
         "source delivers more " +
         (parts > 1 ? formatted("with larger parts: try 'loader.prefetch' %d",
                                threads.prefetch)
                    : formatted("with 'loader.readers' %d and "
                                "'loader.prefetch' %d together",
                                2 * readers, threads.prefetch)) +
         ", or leave both to 'loader.tune': \"auto\"";
}

std::optional<Action> add_batches_ahead(const Snapshot& window) {
  if (window.prefetch < 1) return std::nullopt;
  return worth_it(
      {.knob = "loader.prefetch",
       .from = window.prefetch,
       .to = 2 * window.prefetch,
       .predicted_gain = gain(window, window.stages),
       .cost = formatted("memory for %d more batches; the gain may be less, "
                         "since it is predicted from averages",
                         window.prefetch)});
}

}  // namespace penstock
