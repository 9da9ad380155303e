#include "penstock/advisor/tuner.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "penstock/advisor/pools.h"
#include "penstock/advisor/thresholds.h"
#include "penstock/advisor/trials.h"
#include "penstock/advisor/window_rates.h"
#include "penstock/base/error.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

constexpr double kCalm = 0.02;   // of the wall time, spent waiting
constexpr double kSpare = 1.3;   // of the steps' rate: one thread too many
constexpr double kPool = 1.05;   // of its own rate: a pool that became faster
constexpr double kBurst = 1.05;  // of the steps' rate: fast enough on average
// Of the rate. What a window tells of two pools whose times vary is off by as
// much as they differ.
constexpr double kWorthMoving = 0.05;
constexpr std::int64_t kCalmWindows = 5;

Json json_of(const KnobChange& change) {
  Json json;
  json["knob"] = change.knob;
  json["from"] = change.from;
  json["to"] = change.to;
  return json;
}

}  // namespace

std::vector<KnobChange> Decision::changes() const {
  std::vector<KnobChange> all = {{knob, from, to}};
  if (also) all.push_back(*also);
  return all;
}

bool Decision::moves() const { return also && also->to < also->from; }

std::string Decision::text() const {
  std::string text;
  for (const KnobChange& each : changes())
    text += (text.empty() ? "" : ", ") + each.knob + " " +
            std::to_string(each.from) + " -> " + std::to_string(each.to);
  return text;
}

Json Decision::json() const {
  Json json;
  json["window"] = window;
  json["at_s"] = at_s;
  json["knob"] = knob;
  json["from"] = from;
  json["to"] = to;
  json["also"] = also ? json_of(*also) : Json();
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
  deep_again_ = 0;
  rests_ = "the loop does not wait for its input";
  return ++calm_ < kCalmWindows ? std::nullopt : relax(window);
}

bool Tuner::frozen(const Knob& knob) const {
  auto found = frozen_.find(knob.name);
  return found != frozen_.end() && windows_ < found->second.until;
}

Knob& Tuner::named(const std::string& knob) {
  return *std::ranges::find(knobs_, knob, &Knob::name);
}

const Knob* Tuner::of_pool(const std::string& pool) const {
  auto found = std::ranges::find(knobs_, pool, &Knob::pool);
  return found == knobs_.end() ? nullptr : &*found;
}

// A change is kept where the rate rose, or, of one more thread, where its pool
// became faster while another one limits: the next change may then pay. A
// change for less is kept where nothing became slower. What did not pay is
// looked at in one more window before it is undone, as the mean of both.
std::optional<Decision> Tuner::judge(const Snapshot& window) {
  Pending& pending = *pending_;
  Decision& decision = decisions_.back();
  double rate = rate_in(window);
  if (pending.doubted > 0) rate = (rate + pending.doubted) / 2;
  const std::string& pool = named(decision.knob).pool;
  bool paid = rate > (1 + kSmallestGain) * pending.rate;
  if (decision.to < decision.from)
    paid = rate >= (1 - kSmallestGain) * pending.rate &&
           waits_in(window) <= pending.waits + kCalm;
  else if (!paid && !pool.empty() && !decision.moves())
    paid = rate >= (1 - kSmallestGain) * pending.rate &&
           pool_rate(window, pool) >= kPool * pending.pool_rate;
  if (!paid && pending.doubted == 0) {
    // One window may be a bad one.
    pending.doubted = rate;
    rests_ = "measures the last change once more";
    return std::nullopt;
  }
  decision.measured_gain = rate / pending.rate - 1;
  if (!paid) return undo(rate);
  if (rate > (1 + kSmallestGain) * pending.rate) frozen_.clear();
  if (decision.moves())  // or the next window might take it back
    for (const KnobChange& each : decision.changes())
      frozen_[each.knob].until = windows_ + kFrozen;
  pending_.reset();
  return std::nullopt;
}

// Each time that a knob's change did not pay, it rests twice as long: a loop
// whose rate varies is not disturbed for ever.
void Tuner::take_back() {
  decisions_.back().undone = true;
  pending_.reset();
  calm_ = 0;
  for (const KnobChange& each : decisions_.back().changes()) {
    named(each.knob).value = each.from;
    Freeze& freeze = frozen_[each.knob];
    freeze.until = windows_ + freeze.next;
    freeze.next *= 2;
  }
}

void Tuner::give_up() {
  if (pending_) take_back();  // else it was an undoing
}

std::optional<Decision> Tuner::undo(double rate) {
  take_back();
  const Decision& made = decisions_.back();
  Decision back{.window = windows_,
                .at_s = seconds_,
                .knob = made.knob,
                .from = made.to,
                .to = made.from,
                .also = made.also,
                .reason = "the change did not help: " + rounded(rate) +
                          " samples/s with it"};
  if (back.also) std::swap(back.also->from, back.also->to);
  return decisions_.emplace_back(std::move(back));
}

Decision Tuner::change(const Snapshot& window, KnobChange main,
                       std::optional<KnobChange> also, std::string reason,
                       double gain) {
  const std::string& pool = named(main.knob).pool;
  pending_ = Pending{.rate = rate_in(window),
                     .pool_rate = pool.empty() ? 0 : pool_rate(window, pool),
                     .waits = waits_in(window)};
  calm_ = deep_again_ = 0;
  rests_.clear();
  Decision decision{.window = windows_,
                    .at_s = seconds_,
                    .knob = std::move(main.knob),
                    .from = main.from,
                    .to = main.to,
                    .also = std::move(also),
                    .reason = std::move(reason),
                    .predicted_gain = gain};
  for (const KnobChange& each : decision.changes())
    named(each.knob).value = each.to;
  return decisions_.emplace_back(std::move(decision));
}

const Knob* Tuner::depth() const { return of_pool(""); }

int Tuner::most_at_work(const Snapshot& window) const {
  const std::optional<double> requests = requests_per_batch(window);
  const int ahead = depth() == nullptr ? window.prefetch
                    : frozen(*depth()) ? depth()->value
                                       : depth()->most;
  if (!requests || ahead < 1) return INT_MAX;
  return static_cast<int>(std::lround(*requests * ahead));
}

std::optional<KnobChange> Tuner::room_for(const Snapshot& window,
                                          int threads) const {
  const std::optional<double> requests = requests_per_batch(window);
  const Knob* ahead = depth();
  if (!requests || ahead == nullptr || frozen(*ahead)) return std::nullopt;
  const long batches = std::lround(kPartsEach * threads / *requests);
  const int to = static_cast<int>(std::min<long>(batches, ahead->most));
  if (to <= ahead->value) return std::nullopt;
  return KnobChange{ahead->name, ahead->value, to};
}

std::map<std::string, int> Tuner::fill(const Snapshot& window) {
  std::vector<PlannedPool> planned;
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
      pool_plan.most =
          std::clamp(most_at_work(window), knob->value, knob->most);
    }
    planned.push_back(std::move(pool_plan));
  }
  rests_ = fill_up(planned, budget_, step_rate(window), kAhead,
                   pipeline_of(window).has_value());
  std::map<std::string, int> aim;
  for (const PlannedPool& pool_plan : planned)
    aim[pool_plan.name] = pool_plan.threads;
  return aim;
}

/// What is to become of the threads of a pool.
struct Tuner::Place {
  const Knob* knob = nullptr;  ///< null: they stay unchanged
  int threads = 0, aim = 0;
  double rate = 0, cpu = 0;     ///< of the pool; of one thread while busy
  double used = 0, needed = 0;  ///< processors, now and with `aim` threads
};

std::vector<Tuner::Place> Tuner::places_in(const Snapshot& window) {
  const std::map<std::string, int> aim = fill(window);
  const bool all_busy = pipeline_of(window).has_value();
  std::vector<Place> places;
  for (const Pool& pool : pools_of(window.stages)) {
    auto found = aim.find(name_of(pool));
    if (found == aim.end()) continue;
    Place& place = places.emplace_back(Place{.knob = of_pool(found->first),
                                             .threads = pool.workers,
                                             .aim = found->second,
                                             .rate = pool.rate(),
                                             .cpu = cpu_share(pool)});
    auto processors = [&](int threads) {
      const double at_work = place.threads * rate_in(window) / place.rate;
      return place.cpu *
             (all_busy ? threads : std::min<double>(threads, at_work));
    };
    place.used = processors(place.threads);
    place.needed = processors(place.aim);
  }
  std::ranges::sort(places, {}, &Place::rate);
  return places;
}

/// How many threads the slow pool may have, at most twice as many, where
/// another one may give up those that it does not need.
int Tuner::affordable(const std::vector<Place>& places, const Place& slow,
                      const Place* giver) const {
  double cpus = giver == nullptr ? 0 : giver->needed - giver->used;
  int threads = giver == nullptr ? 0 : giver->aim - giver->threads;
  for (const Place& place : places) {
    cpus += place.used;
    threads += place.threads;
  }
  int more = std::min(slow.aim - slow.threads, slow.threads);
  while (more > 0 && (cpus + more * slow.cpu > budget_.cpus + 1e-9 ||
                      threads + more > budget_.threads))
    --more;
  return slow.threads + more;
}

/// Of the rate, once `slow` has so many threads and the giver no more than it
/// needs: the decision log promises what this change gives, not what all that
/// may follow would.
double Tuner::gain_of(const Snapshot& window, const std::vector<Place>& places,
                      const Place& slow, int threads,
                      const Place* giver) const {
  double reached = step_rate(window);
  for (const Place& place : places) {
    const int with = &place == &slow   ? threads
                     : &place == giver ? place.aim
                                       : place.threads;
    reached = std::min(reached, place.rate / place.threads * with);
  }
  return std::max(0.0, reached / rate_in(window) - 1);
}

std::optional<Decision> Tuner::hurry(const Snapshot& window) {
  if (threads_lack_work(window))
    if (std::optional<Decision> deeper = deepen(window)) return deeper;
  const std::vector<Place> places = places_in(window);
  double reached = step_rate(window);
  for (const Place& place : places)
    reached = std::min(reached, place.rate / place.threads * place.aim);
  const double in_the_end = reached / rate_in(window) - 1;
  auto slow = std::ranges::find_if(
      places, [](const Place& place) { return place.aim > place.threads; });
  if (slow == places.end() || !(in_the_end >= kSmallestGain))
    return deepen(window);

  const std::string reason = "'" + slow->knob->pool + "' gives " +
                             rounded(slow->rate) + " samples/s, the lowest";
  auto set = [&](const Place& place, int to) {
    return KnobChange{place.knob->name, place.threads, to};
  };
  if (const int to = affordable(places, *slow, nullptr); to > slow->threads) {
    const std::optional<KnobChange> room = room_for(window, to);
    return change(
        window, set(*slow, to), room,
        room ? reason + ", and the batches ahead allow too few requests"
             : reason,
        gain_of(window, places, *slow, to, nullptr));
  }
  if (std::optional<Decision> deeper = deepen(window)) return deeper;
  for (const Place& giver : places) {
    if (giver.aim >= giver.threads || in_the_end < kWorthMoving) continue;
    const int with_its = affordable(places, *slow, &giver);
    if (with_its > slow->threads)
      return change(window, set(*slow, with_its), set(giver, giver.aim),
                    reason + ", and '" + giver.knob->pool + "' needs fewer",
                    gain_of(window, places, *slow, with_its, &giver));
  }
  return std::nullopt;
}

std::optional<Decision> Tuner::deepen(const Snapshot& window) {
  const Knob* ahead = depth();
  if (ahead == nullptr || ahead->value == ahead->most || frozen(*ahead) ||
      windows_ < deep_again_)
    return std::nullopt;
  const double steps = step_rate(window);
  std::string reason = "each stage is fast enough on average";
  double gain = steps / rate_in(window) - 1;
  int times = 2;
  if (std::optional<Pipeline> pipeline = pipeline_of(window)) {
    reason = "the times of the stages vary";
    const DeeperQueues enough = deep_enough(*pipeline, kDeepest);
    times = enough.times;
    gain = enough.gain;
  } else if (std::isinf(steps)) {
    gain = 0;
  } else if (slowest_rate(window.stages) < kBurst * steps) {
    const double rate = rate_in(window);
    reason =
        "with so few batches ahead the threads of every stage run out of work";
    gain =
        !threads_lack_work(window)
            ? 0
            : std::min({steps, slowest_rate(window.stages), 2 * rate}) / rate -
                  1;
  }
  if (gain < kSmallestGain) {
    deep_again_ = windows_ + kFrozen;
    return std::nullopt;
  }
  const int to = std::min(times * std::max(1, ahead->value), ahead->most);
  return change(window, {ahead->name, ahead->value, to}, std::nullopt,
                std::move(reason), gain);
}

std::optional<Decision> Tuner::relax(const Snapshot& window) {
  const double steps = step_rate(window);
  for (const Knob& knob : knobs_) {
    if (knob.pool.empty() || knob.value <= knob.least || frozen(knob)) continue;
    const double rate = pool_rate(window, knob.pool);
    if (rate * (knob.value - 1) / knob.value < kSpare * steps) continue;
    return change(window, {knob.name, knob.value, knob.value - 1}, std::nullopt,
                  "one thread fewer in '" + knob.pool + "' is enough", 0);
  }
  return std::nullopt;
}

}  // namespace penstock
