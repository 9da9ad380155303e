#include "penstock/session/live_tuner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace penstock {
namespace {

constexpr Nanoseconds kWindow = std::chrono::seconds(2);
constexpr std::int64_t kSteps = 30;  // of a window, at least
constexpr int kMostReaders = 64;
constexpr std::size_t kReadyBytes = std::size_t{256} << 20;
// Of a device's own memory, of which the model needs more as it goes on.
constexpr std::size_t kReadyOnDevice = std::size_t{64} << 20;

std::optional<Nanoseconds> difference(const std::optional<Nanoseconds>& now,
                                      const std::optional<Nanoseconds>& then) {
  if (!now) return std::nullopt;
  return *now - then.value_or(Nanoseconds(0));
}

bool sets(const Job& job, const char* key) {
  const Json* loader = job.document.find("loader");
  return loader != nullptr && loader->find(key) != nullptr;
}

/// As many batches ready ahead as there is memory for.
int deepest(LoaderOptions options, const DatasetFacts& facts) {
  const int now = options.prefetch;
  for (options.prefetch = Tuner::kDeepest; options.prefetch > now;
       --options.prefetch) {
    const RingBytes ring = ring_bytes(options, facts);
    if (ring.host == 0
            ? ring.device <= kReadyBytes
            : ring.device <= kReadyOnDevice && ring.host <= kReadyBytes)
      break;
  }
  return options.prefetch;
}

std::vector<Knob> knobs_of(const Job& job, const Dataset& rows,
                           const LoaderOptions& options,
                           const LoaderThreads& threads) {
  std::vector<Knob> knobs;
  const int cpus = std::max(1, static_cast<int>(std::floor(loader_cpus(job))));
  if (!sets(job, "workers"))
    knobs.push_back({.name = "loader.workers",
                     .pool = "loader",
                     .value = threads.workers,
                     .most = std::max(threads.workers, cpus)});
  const int readers = std::min(kMostReaders, rows.facts().most_readers);
  if (threads.readers > 0 && threads.readers < readers && !sets(job, "readers"))
    knobs.push_back({.name = "loader.readers",
                     .pool = "readers",
                     .value = threads.readers,
                     .most = readers});
  const int depth = deepest(options, rows.facts());
  if (depth > threads.prefetch && !sets(job, "prefetch"))
    knobs.push_back({.name = "loader.prefetch",
                     .value = threads.prefetch,
                     .least = threads.prefetch,
                     .most = depth});
  return knobs;
}

std::string line_of(const Decision& change) {
  const std::string line = change.text() + ": " + change.reason;
  char gain[64];
  std::snprintf(gain, sizeof(gain), " (predicted gain %.0f %%)",
                100 * change.predicted_gain);
  return change.predicted_gain > 0 ? line + gain : line;
}

}  // namespace

Snapshot since(const Snapshot& earlier, const Snapshot& now) {
  Snapshot window = now;
  window.parts = now.parts - earlier.parts;
  window.samples -= earlier.samples;
  window.wait_order -= earlier.wait_order;
  for (StageNumbers& stage : window.stages) {
    auto then =
        std::ranges::find(earlier.stages, stage.name, &StageNumbers::name);
    if (then == earlier.stages.end()) continue;
    stage.items -= then->items;
    stage.calls -= then->calls;
    stage.bytes -= then->bytes;
    stage.busy_wall -= then->busy_wall;
    stage.busy_cpu = std::clamp(stage.busy_cpu - then->busy_cpu, Nanoseconds(0),
                                stage.busy_wall);
    stage.blocked_get = difference(stage.blocked_get, then->blocked_get);
    stage.blocked_put = difference(stage.blocked_put, then->blocked_put);
  }
  return window;
}

std::unique_ptr<LiveTuner> LiveTuner::of(const Job& job, const Dataset& rows,
                                         const LoaderOptions& options,
                                         const Loader& loader,
                                         const Clock& clock) {
  const std::optional<LoaderThreads> threads = loader.threads();
  if (!job.loading.tune || job.device.virtual_time || !threads) return nullptr;
  std::vector<Knob> knobs = knobs_of(job, rows, options, *threads);
  if (knobs.empty()) return nullptr;
  TunerBudget budget{.cpus = loader_cpus(job),
                     .threads = kMostReaders + threads->workers};
  return std::unique_ptr<LiveTuner>(
      new LiveTuner(Tuner(budget, std::move(knobs)), *threads, clock));
}

LoaderThreads LiveTuner::threads() const {
  LoaderThreads threads = threads_;
  for (const Knob& knob : tuner_.knobs()) {
    if (knob.name == "loader.workers") threads.workers = knob.value;
    if (knob.name == "loader.readers") threads.readers = knob.value;
    if (knob.name == "loader.prefetch") threads.prefetch = knob.value;
  }
  if (one_ahead_) threads.prefetch = std::min(threads.prefetch, 1);
  return threads;
}

std::optional<Snapshot> LiveTuner::settled(const Snapshot& now) const {
  if (!changed_at_) return std::nullopt;
  Snapshot window = since(*changed_at_, now);
  if (window.parts.steps < kSteps) return std::nullopt;
  return window;
}

bool LiveTuner::set(Loader& loader) try {
  if (loader.threads()) loader.set_threads(threads());
  return true;
} catch (const Error& error) {
  log(LogLevel::warning,
      std::string("the loader's settings stay unchanged: ") + error.what());
  return false;
}

void LiveTuner::use(Loader& loader) {
  set(loader);
  steps_ = 0;
}

// A window must hold both kSteps steps and kWindow seconds: fewer steps are
// noise, less time is dominated by single stalls. After a change as many steps
// are skipped as batches may have been made before it, twice the prefetch depth
// and two; otherwise a change would be judged by the settings before it.
void LiveTuner::step(Loader& loader, const std::function<Snapshot()>& now,
                     const std::function<void(const std::string&)>& note) {
  if (paused_at_) began_ += clock_.now() - *std::exchange(paused_at_, {});
  if (skip_ > 0) {
    --skip_;
    return;
  }
  if (steps_++ == 0) {
    before_ = now();
    began_ = clock_.now();
    return;
  }
  if (steps_ <= kSteps || clock_.now() - began_ < kWindow) return;
  const Snapshot all = now();
  steps_ = 0;
  const std::optional<Decision> change = tuner_.next(since(before_, all));
  if (!change) return;
  // Batches that are under way were made with the threads of before.
  skip_ = 2 * threads().prefetch + 2;
  changed_at_ = all;
  if (!set(loader))
    tuner_.give_up();
  else if (note)
    note(line_of(*change));
}

}  // namespace penstock
