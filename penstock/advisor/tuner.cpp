#include "penstock/advisor/tuner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "penstock/advisor/pools.h"
#include "penstock/advisor/thresholds.h"
#include "penstock/advisor/trials.h"
#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr double kCalm = 0.02;   // of the wall time, spent waiting
constexpr double kSpare = 1.3;   // of the steps' rate: one thread too many
constexpr double kPool = 1.05;   // of its own rate: a pool that became faster
constexpr double kBurst = 1.05;  // of the steps' rate: fast enough on average
constexpr double kAtWork = 0.8;  // of the time of a pool's threads
// It takes two changes, and the first one makes a pool slower.
constexpr double kWorthMoving = 0.05;
constexpr std::int64_t kCalmWindows = 5;

const std::string& name_of(const Pool& pool) {
  return pool.name.empty() ? pool.stages.front().name : pool.name;
}

/// Processors that one thread of a pool uses while it is busy.
double cpu_share(const Pool& pool) {
  double wall = 0, cpu = 0;
  for (const StageNumbers& stage : pool.stages) {
    wall += seconds(stage.busy_wall);
    cpu += seconds(stage.busy_cpu);
  }
  return wall <= 0 ? 0 : std::min(1.0, cpu / wall);
}

double rate_in(const Snapshot& window) {
  return static_cast<double>(window.parts.samples) / seconds(window.parts.wall);
}

/// Of the steps alone; endless where they take no time.
double step_rate(const Snapshot& window) {
  if (!window.parts.steps_take_time())
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(window.parts.samples) /
         seconds(window.parts.compute);
}

double waits_in(const Snapshot& window) {
  return seconds(window.parts.wait_data) / seconds(window.parts.wall);
}

double pool_rate(const Snapshot& window, const std::string& name) {
  for (const Pool& pool : pools_of(window.stages))
    if (name_of(pool) == name) return pool.rate();
  return 0;
}

/// The threads of no pool are at work all the time: batches ahead, which bound
/// how many reads are under way, are too few for them.
bool threads_lack_work(const Snapshot& window) {
  if (pipeline_of(window)) return false;
  return std::ranges::none_of(pools_of(window.stages), [&](const Pool& pool) {
    double busy = 0;
    for (const StageNumbers& stage : pool.stages)
      busy += seconds(stage.busy_wall);
    return busy >
           kAtWork * seconds(window.parts.wall) * std::max(1, pool.workers);
  });
}

/// One pool of threads while its number is looked for.
struct PlannedPool {
  std::string name;
  double each = 0;  ///< samples per second of one thread
  double cpu = 0;
  int threads = 1;
  int most = 1;  ///< `threads` where it may not be changed

  double rate() const { return each * threads; }
};

/// What the threads use while the slowest of them, or the steps, set the pace;
/// of a described pipeline, whose budget is of threads, when all are busy.
double processors(const std::vector<PlannedPool>& planned, double steps,
                  bool all_busy) {
  double pace = steps;
  for (const PlannedPool& pool : planned) pace = std::min(pace, pool.rate());
  double sum = 0;
  for (const PlannedPool& pool : planned)
    sum += pool.cpu * (all_busy
                           ? pool.threads
                           : std::min<double>(pool.threads, pace / pool.each));
  return sum;
}

/// What the threads of a pool use at the rate of a window.
double processors_of(const Pool& pool, double rate, bool all_busy) {
  const double each = pool.rate() / pool.workers;
  return cpu_share(pool) * (all_busy
                                ? pool.workers
                                : std::min<double>(pool.workers, rate / each));
}

std::string rounded(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), number < 100 ? "%.1f" : "%.0f", number);
  return text;
}

}  // namespace

Json Decision::json() const {
  Json json;
  json["window"] = window;
  json["at_s"] = at_s;
  json["knob"] = knob;
  json["from"] = from;
  json["to"] = to;
  json["reason"] = reason;
  json["predicted_gain"] = predicted_gain;
  json["measured_gain"] = measured_gain ? Json(*measured_gain) : Json();
  json["undone"] = undone;
  return json;
}

Tuner::Tuner(TunerBudget budget, std::vector<Knob> knobs)
    : budget_(budget), knobs_(std::move(knobs)) {
  for (const Knob& knob : knobs_)
    PENSTOCK_ASSERT(knob.least <= knob.value && knob.value <= knob.most,
                    "a knob is outside of its limits");
}

std::optional<Decision> Tuner::next(const Snapshot& window) {
  if (window.parts.steps < 1 || window.parts.wall <= Nanoseconds(0) ||
      window.virtual_time)
    return std::nullopt;
  ++windows_;
  seconds_ += seconds(window.parts.wall);
  rests_.clear();
  if (pending_) {
    std::optional<Decision> undone = judge(window);
    if (undone || pending_) return undone;
  }
  if (waits_in(window) > kCalm) {
    calm_ = 0;
    return hurry(window);
  }
  deep_after_.reset();
  rests_ = "the loop does not wait for its input";
  return ++calm_ < kCalmWindows ? std::nullopt : relax(window);
}

bool Tuner::frozen(const Knob& knob) const {
  auto found = frozen_.find(knob.name);
  return found != frozen_.end() && windows_ < found->second.until;
}

const Knob* Tuner::of_pool(const std::string& pool) const {
  auto found = std::ranges::find(knobs_, pool, &Knob::pool);
  return found == knobs_.end() ? nullptr : &*found;
}

std::optional<Decision> Tuner::judge(const Snapshot& window) {
  Pending& pending = *pending_;
  Decision& decision = decisions_.back();
  double rate = rate_in(window);
  if (pending.doubted > 0) rate = (rate + pending.doubted) / 2;
  const std::string& pool = knobs_[pending.knob].pool;
  bool paid = rate > (1 + kSmallestGain) * pending.rate;
  if (decision.to < decision.from)
    paid = rate >= (1 - kSmallestGain) * pending.rate &&
           waits_in(window) <= pending.waits + kCalm;
  else if (!paid && !pool.empty())
    paid = rate >= (1 - kSmallestGain) * pending.rate &&
           pool_rate(window, pool) >= kPool * pending.pool_rate;
  if (!paid && pending.doubted == 0) {
    // One window may be a bad one.
    pending.doubted = rate;
    rests_ = "looks once more at the last change";
    return std::nullopt;
  }
  decision.measured_gain = rate / pending.rate - 1;
  if (!paid) return undo(rate);
  if (rate > (1 + kSmallestGain) * pending.rate) frozen_.clear();
  pending_.reset();
  return std::nullopt;
}

Knob& Tuner::freeze_changed() {
  decisions_.back().undone = true;
  Knob& knob = knobs_[std::exchange(pending_, std::nullopt)->knob];
  Freeze& freeze = frozen_[knob.name];
  freeze.until = windows_ + freeze.next;
  freeze.next *= 2;
  calm_ = 0;
  return knob;
}

void Tuner::give_up() {
  if (!pending_) return;  // it was an undoing
  freeze_changed().value = decisions_.back().from;
}

std::optional<Decision> Tuner::undo(double rate) {
  Knob& knob = freeze_changed();
  Decision back{.window = windows_,
                .at_s = seconds_,
                .knob = knob.name,
                .from = knob.value,
                .to = decisions_.back().from,
                .reason = "the change did not pay: " + rounded(rate) +
                          " samples/s with it"};
  knob.value = back.to;
  return decisions_.emplace_back(std::move(back));
}

Decision Tuner::change(const Snapshot& window, std::size_t at, int to,
                       std::string reason, double gain) {
  Knob& knob = knobs_[at];
  pending_ =
      Pending{.knob = at,
              .rate = rate_in(window),
              .pool_rate = knob.pool.empty() ? 0 : pool_rate(window, knob.pool),
              .waits = waits_in(window)};
  calm_ = 0;
  rests_.clear();
  Decision decision{.window = windows_,
                    .at_s = seconds_,
                    .knob = knob.name,
                    .from = knob.value,
                    .to = to,
                    .reason = std::move(reason),
                    .predicted_gain = gain};
  knob.value = to;
  return decisions_.emplace_back(std::move(decision));
}

std::map<std::string, int> Tuner::fill(const Snapshot& window) {
  std::vector<PlannedPool> planned;
  int threads = 0;
  for (const Pool& pool : pools_of(window.stages)) {
    if (pool.workers == 0 || std::isinf(pool.rate())) continue;
    const Knob* knob = of_pool(name_of(pool));
    PlannedPool pool_plan{.name = name_of(pool),
                          .each = pool.rate() / pool.workers,
                          .cpu = cpu_share(pool),
                          .threads = pool.workers,
                          .most = pool.workers};
    if (knob != nullptr && !frozen(*knob)) {
      pool_plan.threads = knob->least;
      pool_plan.most = knob->most;
    }
    threads += pool_plan.threads;
    planned.push_back(std::move(pool_plan));
  }
  const double steps = step_rate(window), enough = kAhead * steps;
  const bool all_busy = pipeline_of(window).has_value();
  while (!planned.empty()) {
    PlannedPool& lowest =
        *std::ranges::min_element(planned, {}, &PlannedPool::rate);
    if (lowest.rate() >= enough) break;
    ++lowest.threads;
    const bool room =
        processors(planned, steps, all_busy) <= budget_.cpus + 1e-9 &&
        threads < budget_.threads;
    if (lowest.threads > lowest.most || !room) {
      --lowest.threads;
      rests_ = "'" + lowest.name + "' gives " + rounded(lowest.rate()) +
               " samples/s with " + std::to_string(lowest.threads) +
               (lowest.threads == 1 ? " thread" : " threads") +
               (room ? ", its most"
                     : ", and all " + rounded(budget_.cpus) +
                           " processors of the budget are used");
      break;
    }
    ++threads;
  }
  std::map<std::string, int> aim;
  for (const PlannedPool& pool_plan : planned)
    aim[pool_plan.name] = pool_plan.threads;
  return aim;
}

std::optional<Decision> Tuner::hurry(const Snapshot& window) {
  if (threads_lack_work(window))
    if (std::optional<Decision> deeper = deepen(window)) return deeper;
  const std::map<std::string, int> aim = fill(window);
  const bool all_busy = pipeline_of(window).has_value();
  double reached = step_rate(window), cpus = 0;
  int threads = 0;
  struct Place {
    std::size_t knob;
    double rate, cpu;
    int aim;
  };
  std::vector<Place> places;
  for (const Pool& pool : pools_of(window.stages)) {
    if (!aim.contains(name_of(pool))) continue;
    const int to = aim.at(name_of(pool));
    reached = std::min(reached, pool.rate() / pool.workers * to);
    cpus += processors_of(pool, rate_in(window), all_busy);
    threads += pool.workers;
    if (const Knob* knob = of_pool(name_of(pool)))
      places.push_back({static_cast<std::size_t>(knob - knobs_.data()),
                        pool.rate(), cpu_share(pool), to});
  }
  const double gain = reached / rate_in(window) - 1;
  auto lacks = [&](const Place& place) {
    return place.aim > knobs_[place.knob].value && !frozen(knobs_[place.knob]);
  };
  std::ranges::sort(places, {}, &Place::rate);
  auto slow = std::ranges::find_if(places, lacks);
  if (slow == places.end() || !(gain >= kSmallestGain)) return deepen(window);

  const Knob& knob = knobs_[slow->knob];
  int to = knob.value + std::min(slow->aim - knob.value, knob.value);
  while (to > knob.value &&
         (cpus + (to - knob.value) * slow->cpu > budget_.cpus + 1e-9 ||
          threads + to - knob.value > budget_.threads))
    --to;
  if (to > knob.value)
    return change(window, slow->knob, to,
                  "'" + knob.pool + "' gives " + rounded(slow->rate) +
                      " samples/s, the lowest",
                  gain);
  if (std::optional<Decision> deeper = deepen(window)) return deeper;
  // The budget is used: threads that a faster pool does not need.
  for (const Place& place : places)
    if (knobs_[place.knob].value > place.aim && !frozen(knobs_[place.knob]) &&
        gain >= kWorthMoving)
      return change(window, place.knob, place.aim,
                    "'" + knob.pool + "' needs its processors", gain);
  return std::nullopt;
}

std::optional<Decision> Tuner::deepen(const Snapshot& window) {
  auto depth = std::ranges::find_if(knobs_, [this](const Knob& knob) {
    return knob.pool.empty() && knob.value < knob.most && !frozen(knob);
  });
  if (depth == knobs_.end() || deep_after_ == decisions_.size())
    return std::nullopt;
  const double steps = step_rate(window);
  std::string reason = "each stage is fast enough on average";
  double gain = steps / rate_in(window) - 1;
  if (std::optional<Pipeline> pipeline = pipeline_of(window)) {
    reason = "the times of the stages vary";
    gain = gain_of_deeper_queues(*pipeline, kDeepest);
  } else if (std::isinf(steps)) {
    gain = 0;
  } else if (slowest_rate(window.stages) < kBurst * steps) {
    const double rate = rate_in(window);
    reason = "with so few batches ahead the threads of every stage lack work";
    gain =
        !threads_lack_work(window)
            ? 0
            : std::min({steps, slowest_rate(window.stages), 2 * rate}) / rate -
                  1;
  }
  if (gain < kSmallestGain) {
    deep_after_ = decisions_.size();
    return std::nullopt;
  }
  return change(window, static_cast<std::size_t>(depth - knobs_.begin()),
                std::min(2 * std::max(1, depth->value), depth->most),
                std::move(reason), gain);
}

std::optional<Decision> Tuner::relax(const Snapshot& window) {
  const double steps = step_rate(window);
  for (std::size_t i = 0; i < knobs_.size(); ++i) {
    const Knob& knob = knobs_[i];
    if (knob.pool.empty() || knob.value <= knob.least || frozen(knob)) continue;
    const double rate = pool_rate(window, knob.pool);
    if (rate * (knob.value - 1) / knob.value < kSpare * steps) continue;
    return change(window, i, knob.value - 1,
                  "one thread less of '" + knob.pool + "' is enough", 0);
  }
  return std::nullopt;
}

}  // namespace penstock
