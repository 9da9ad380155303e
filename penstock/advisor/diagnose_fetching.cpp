// What more workers would bring is predicted from four times, of which the
// longest decides: that of the loop's thread (its own work, and receiving
// batches), that of the workers (making and sending batches, shared among
// them), that of all processors (everything that was done on one), and, where
// it was measured how long each batch took, that of batches which are handed
// out in their order, however long one of them is waited for. Moving
// batches between processes is measured: with workers as it happens, without
// them by moving one batch in the loop's own process. Items that wait more than
// they compute may have more workers than there are processors, which then wait
// for these, too.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "penstock/advisor/advisor.h"
#include "penstock/advisor/gaps_in_steps.h"
#include "penstock/advisor/in_order.h"
#include "penstock/advisor/makers.h"
#include "penstock/advisor/thresholds.h"
#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr std::int64_t kLeastBatches = 8;
constexpr double kLeastRatio = 1 + kSmallestGain;
constexpr double kShortest = 1e-9;      // seconds, to divide by
constexpr double kKeepsUp = 1.3;        // as fast as the loop: workers keep up
constexpr double kFarAhead = 10;        // so much faster: none is made too late
constexpr double kShareInPeace = 0.9;   // below: other work has the processors
constexpr double kWaitsInCrowd = 0.25;  // of the time: more is no small matter
constexpr double kWaitsMostly = 0.5;    // computes less: it needs no processor
constexpr double kSleeps = 0.1;         // processors in use
constexpr int kMostThatWait = 32;       // workers: each takes memory, too
constexpr int kMostTimesAhead = 32;     // of prefetch: so do batches

/// How many times as fast as the loop takes batches the workers make them.
/// None where there are no workers.
std::optional<double> workers_ahead(const FetchWindow& window) {
  const std::optional<double> rate = window.worker_rate();
  if (!rate || window.workers < 1 || window.items < 1) return std::nullopt;
  return *rate * window.workers * window.loop_s /
         static_cast<double>(window.items);
}

/// The loop waits, and for processors that other work has: its batches were
/// made long before.
bool waits_in_crowd(const FetchWindow& window) {
  return share_of_processors(window) < kShareInPeace &&
         window.wait_s <= kWaitsInCrowd * window.spent_s() &&
         workers_ahead(window).value_or(0) >= kKeepsUp;
}

/// Seconds that a number of workers would take for what was measured.
struct ItemTimes {
  double loop;
  double workers;
  double processors;
  double in_order;  ///< 0: it is not known how long each batch took
  double shared() const { return std::max({loop, workers, processors}); }
  double longest() const { return std::max(shared(), in_order); }
};

/// The first of them that is nearly as short as the shortest.
auto nearly_shortest(const std::vector<double>& seconds) {
  const double most = *std::ranges::min_element(seconds) * kLeastRatio;
  return std::ranges::find_if(seconds,
                              [most](double one) { return one <= most; });
}

/// Makes a verdict on one window, part by part.
class FetchDiagnosis {
 public:
  explicit FetchDiagnosis(const FetchWindow& window)
      : window_(window),
        makers_(use_of_makers(window)),
        cause_(cause_in_items(window)),
        left_(share_of_processors(window)),
        cpus_(window.cpus * left_) {}

  Verdict make() {
    verdict_.limit = limit_of(window_);
    if (verdict_.limit == Limit::unknown) {
      too_few();
      return std::move(verdict_);
    }
    verdict_.because = measured();
    advise();
    if (is_held_up()) offer_prefetch();
    if (verdict_.limit == Limit::data) name_cause();
    if (verdict_.limit == Limit::compute && !has_gaps()) keeps_up();
    if (verdict_.limit != Limit::data) offer_pinning();
    return std::move(verdict_);
  }

 private:
  void too_few() {
    verdict_.cause = "too few batches for a verdict";
    verdict_.because = formatted("there were %ld batches, and %ld are needed",
                                 long(window_.batches), long(kLeastBatches));
    verdict_.no_action = "take more batches, then ask again";
  }

  std::string measured() const {
    const FetchWindow& w = window_;
    double items = static_cast<double>(w.items);
    std::string text = formatted(
        "the loop waited %.0f%% of its time for a batch (%.2f s of %.2f s, %ld "
        "batches of %.0f items; first batch after %.0f ms)",
        100 * (w.wait_s / w.spent_s()), w.wait_s, w.spent_s(), long(w.batches),
        items / static_cast<double>(w.batches), w.first_batch_s * 1000);
    if (std::optional<double> rate = w.worker_rate())
      text += formatted("; %d worker(s) needed %.2f ms per item", w.workers,
                        1000 * (1 / *rate));
    if (w.workers == 0 && w.transfer &&
        (w.transfer->worker_s != 0 || w.transfer->loop_s != 0))
      text += formatted(
          "; a trial moved a batch between processes in %.2f ms of a worker "
          "and %.2f ms of the loop",
          w.transfer->worker_s * 1000, w.transfer->loop_s * 1000);
    if (!w.making && w.looked)
      text += formatted(
          "; making a batch needed a processor for %.0f%% of the time it took",
          100 * makers_.value_or(MakersUse()).runnable());
    if (left_ < kShareInPeace && !mostly_sleeps())
      text += formatted(
          "; other programs left the loop a processor for %.0f%% of the time "
          "in which it could run",
          100 * left_);
    return text;
  }

  /// Loop and workers need so little of the processors that the time for which
  /// they wait for one shows how soon they are woken.
  bool mostly_sleeps() const {
    const FetchWindow& w = window_;
    return w.looked && w.cpu_s + w.worker_cpu_s < kSleeps * w.spent_s();
  }

  /// A GPU that waits for the loop within the steps.
  bool has_gaps() {
    const FetchWindow& w = window_;
    Snapshot steps;
    steps.parts = {.steps = w.gpu_steps,
                   .samples = w.items,
                   .wall = from_seconds(w.spent_s()),
                   .compute = from_seconds(w.loop_s),
                   .drained = w.gpu_drained};
    steps.gpu_busy = w.gpu_busy;
    std::optional<Verdict> gaps = gaps_in_steps(steps, verdict_.because);
    if (!gaps) return false;
    verdict_ = std::move(*gaps);
    return true;
  }

  /// What the loop waits for, and what to do about it, or why there is nothing
  /// to do.
  void advise() {
    const FetchWindow& w = window_;
    verdict_.cause = w.workers > 0 ? "the workers do not keep up"
                                   : "the loop itself fetches the items";
    if (!w.has_workers) {
      verdict_.cause = "the loop's own thread makes the batches";
      verdict_.no_action = formatted(
          "the loop has no workers: let a penstock.Loader or "
          "penstock.DataLoader make its batches, or a thread ahead of the "
          "loop. Without any waiting the loop would be up to %.0f %% faster",
          100 * w.wait_s / std::max(w.loop_s, kShortest));
    } else if (are_made_in_time()) {
      verdict_.cause = formatted(
          "on average batches are made %.0f times as fast as the loop takes "
          "them, and the loop waits for their transfer",
          *workers_ahead(w));
      verdict_.no_action =
          "make items smaller, or set workers=\"threads\" if the data set "
          "releases Python's global interpreter lock; other programs delay the "
          "transfer too";
    } else if (!w.making && w.workers > 1 && waits_in_lock(w)) {
      verdict_.cause +=
          ": they wait for a lock that another worker, thread or process holds";
      verdict_.no_action = instead_of_lock();
    } else if (w.workers >= most_workers()) {
      verdict_.cause = formatted("%d workers on %d processors do not keep up",
                                 w.workers, w.cpus);
      verdict_.no_action =
          std::string(most_workers() > w.cpus
                          ? "each further worker also takes memory"
                          : "there are no processors for more workers") +
          ": make an item cheaper, or " +
          (w.making || most_workers() <= w.cpus
               ? std::string("move work out of ") + made_by(w)
           : w.iterable ? "let __iter__ wait once for many items"
                        : "let __getitems__, which gets the indices of a "
                          "batch, wait once for all items");
    } else if (w.workers == 0 && !w.transfer) {
      verdict_.no_action =
          "the cost of moving batches between processes has not been measured "
          "yet: take more batches";
    } else if (w.workers == 0 && !w.transfer->why_not.empty()) {
      verdict_.no_action =
          "a batch cannot be moved between processes (" + w.transfer->why_not +
          "): build batches from arrays, or set workers=\"threads\" if the "
          "data set releases Python's global interpreter lock";
    } else {
      offer_workers();
    }
  }

  /// Single items hold up the others.
  bool has_slow_items() const {
    return cause_ && cause_->limit == Limit::order;
  }

  /// What makes items slow, where it was measured. What to do about single ones
  /// is said beside any action.
  void name_cause() {
    if (!cause_ || (are_made_in_time() && !has_slow_items())) return;
    verdict_.limit = cause_->limit;
    verdict_.stage = cause_->stage;
    verdict_.cause += ": " + cause_->cause;
    if (!verdict_.no_action.empty())
      verdict_.no_action += "; " + cause_->next;
    else if (has_slow_items())
      verdict_.cause += "; " + cause_->next;
  }

  /// For workers beyond the processors. Threads that compute may be one at a
  /// time: each needs Python's lock for some of it.
  int shared_cpus() const { return window_.threads ? 1 : window_.cpus; }

  /// As many as there are processors; of workers that wait, and not for a lock,
  /// as many as these can carry.
  int most_workers() const {
    const FetchWindow& w = window_;
    if (!makers_ || makers_->runnable() >= kWaitsMostly || waits_in_lock(w))
      return w.cpus;
    const double carried = shared_cpus() / std::max(makers_->runnable(), 0.01);
    return std::max(w.cpus,
                    static_cast<int>(std::min<double>(kMostThatWait, carried)));
  }

  std::string cost_of_workers(int more) const {
    const FetchWindow& w = window_;
    std::string cost =
        w.workers + more > w.cpus
            ? formatted(
                  "up to %d more workers, which mostly wait, and their memory; "
                  "the gain is less if what they wait for cannot serve as many "
                  "at once",
                  more)
            : formatted("up to %d of %d processors", more, w.cpus);
    if (w.iterable)
      cost +=
          "; each worker runs all of __iter__, and must yield only its share "
          "(torch.utils.data.get_worker_info()), or samples come several times";
    return cost;
  }

  /// As few more workers as gain nearly as much as any number of them.
  void offer_workers() {
    const FetchWindow& w = window_;
    std::vector<double> longest;
    for (int to = w.workers + 1; to <= most_workers(); ++to)
      longest.push_back(times(to).longest());
    const auto found = nearly_shortest(longest);
    double now = w.workers > 0 ? times(w.workers).longest() : w.spent_s();
    double gain = now / *found;
    if (gain >= kLeastRatio) {
      int more = static_cast<int>(found - longest.begin()) + 1;
      verdict_.actions.push_back({.knob = "num_workers",
                                  .from = w.workers,
                                  .to = w.workers + more,
                                  .predicted_gain = gain - 1,
                                  .cost = cost_of_workers(more)});
    } else {
      const ItemTimes with_more = times(w.workers + 1);
      verdict_.no_action = why_no_workers(with_more, gain);
      if (!is_held_up() && come_in_bursts(with_more)) offer_prefetch_by_means();
    }
  }

  /// Where batches come late, pinned ones would come as late.
  void offer_pinning() {
    const FetchWindow& w = window_;
    if (!w.copies) return;
    const double step =
        w.spent_s() /
        static_cast<double>(std::max<std::int64_t>(1, w.batches - 1));
    const double spared = w.copies->pageable_s - w.copies->pinned_s;
    if (spared <= 0 || spared >= step) return;
    const double gain = spared / (step - spared);
    if (gain < kSmallestGain) return;
    verdict_.actions.push_back(
        {.knob = "pin_memory",
         .from = false,
         .to = true,
         .predicted_gain = gain,
         .cost = "pinned memory for the batches ahead and a thread that copies "
                 "into it; the loop must use .to(device, non_blocking=True)"});
    best_first();
  }

  /// After an action was added.
  void best_first() {
    std::ranges::stable_sort(verdict_.actions, std::greater(),
                             &Action::predicted_gain);
    verdict_.no_action.clear();
  }

  ItemTimes times(int workers) const {
    return times(workers, window_.prefetch);
  }

  ItemTimes times(int workers, int prefetch) const {
    const FetchWindow& w = window_;
    double made = std::max(w.wait_s, w.host_wait_s);
    double made_cpu = 0, received = 0, moved_cpu = 0;
    const auto batches = static_cast<double>(w.batches);
    if (w.worker_items > 0) {  // some of it is made ahead
      double share =
          static_cast<double>(w.items) / static_cast<double>(w.worker_items);
      made = w.worker_s * share;
      made_cpu = w.worker_cpu_s * share;
      if (w.blocked_s) {
        received = std::max(0.0, w.wait_s - *w.blocked_s);
      } else if (w.transfer) {
        made += w.transfer->worker_s * batches;
        received = std::min(w.wait_s, w.transfer->loop_s * batches);
      }
    } else if (w.transfer) {
      made += w.transfer->worker_s * batches;
      received = w.transfer->loop_s * batches;
      moved_cpu = (w.transfer->worker_s + w.transfer->loop_s) * batches;
    }
    ItemTimes all{.loop = std::max(w.loop_s, kShortest) + received,
                  .workers = makers_seconds(workers, made),
                  .processors = (w.cpu_s + made_cpu + moved_cpu) / cpus_,
                  .in_order = 0};
    all.in_order = in_order_s(all, workers, prefetch);
    return all;
  }

  /// Each batch takes its part of the time that the workers need together.
  double in_order_s(const ItemTimes& all, int workers, int prefetch) const {
    const FetchWindow& w = window_;
    if (!w.making || w.making->batch_seconds.empty() || prefetch < 1) return 0;
    const auto batches = static_cast<double>(w.batches);
    std::vector<double> batch_s = w.making->batch_seconds;
    const double mean = std::reduce(batch_s.begin(), batch_s.end()) /
                        static_cast<double>(batch_s.size());
    const double now_per_then =
        all.workers * workers / (std::max(mean, kShortest) * batches);
    for (double& seconds : batch_s) seconds *= now_per_then;
    return batches * seconds_in_order({.batch_s = batch_s,
                                       .workers = workers,
                                       .depth = prefetch,
                                       .loop_s = all.loop / batches,
                                       .epoch = w.epoch_batches,
                                       .in_turn = true});
  }

  /// For what took one of them `made`. Where each has a processor, what it
  /// waits for one is due to other work, and stays.
  double makers_seconds(int workers, double made) const {
    if (!makers_ || makers_->runnable() >= kWaitsMostly) return made / workers;
    const double waits = made * (1 - makers_->runnable());
    const bool own = window_.workers > window_.cpus;
    return seconds_of_workers(
        workers, waits, made * (own ? makers_->ran : makers_->runnable()),
        workers > window_.cpus ? shared_cpus() : window_.cpus);
  }

  std::string why_no_workers(ItemTimes with_more, double gain) const {
    std::string more = "more workers would gain less than 2 %";
    if (gain < 1 - kSmallestGain)
      more = formatted("more workers would change the speed by %+.0f %%",
                       100 * (gain - 1));
    if (is_held_up())
      return more + ": while one item is slow, the loop waits for its batch";
    if (come_in_bursts(with_more))
      return more +
             ": the present ones are fast enough on average, but batches come "
             "in bursts; try a larger prefetch_factor";
    if (with_more.processors >= std::max(with_more.loop, with_more.workers))
      return more +
             ": the processors are fully used; make an item cheaper, or move "
             "work out of " +
             made_by(window_);
    if (with_more.loop > window_.loop_s * kLeastRatio)
      return more + formatted(
                        ": the loop would spend %.2f s on receiving batches "
                        "that it now waits %.2f s for; make items smaller or "
                        "cheaper, or set workers=\"threads\" if the data set "
                        "releases Python's global interpreter lock",
                        with_more.loop - window_.loop_s, window_.wait_s);
    return more + ": make an item cheaper";
  }

  /// Batches are made so fast that hardly one of them can be late: what the
  /// loop waits for is that they reach it.
  bool are_made_in_time() const {
    return workers_ahead(window_).value_or(0) >= kFarAhead;
  }

  /// Neither processors nor receiving holds the loop up, nor are there too few
  /// workers.
  bool come_in_bursts(ItemTimes with_more) const {
    return window_.workers > 0 && !are_made_in_time() &&
           with_more.processors < std::max(with_more.loop, with_more.workers) &&
           with_more.loop <= window_.loop_s * kLeastRatio;
  }

  /// What single items take longer than the rest is most of what the loop
  /// waits for.
  bool is_held_up() const {
    if (!has_slow_items() || waits_in_lock(window_)) return false;
    const ItemTimes now = times(window_.workers);
    return now.in_order > now.shared() * kLeastRatio;
  }

  /// More batches that lie ready outlast a slow one: as few more as gain nearly
  /// as much as any number of them.
  void offer_prefetch() {
    const FetchWindow& w = window_;
    std::vector<int> tried;
    std::vector<double> seconds;
    for (int to = 2 * w.prefetch; to <= kMostTimesAhead * w.prefetch; to *= 2) {
      tried.push_back(to);
      seconds.push_back(times(w.workers, to).longest());
    }
    const auto found = nearly_shortest(seconds);
    offer_prefetch(tried[static_cast<std::size_t>(found - seconds.begin())],
                   times(w.workers).longest() / *found - 1, "");
  }

  void offer_prefetch_by_means() {
    const FetchWindow& w = window_;
    if (w.prefetch < 1) return;
    offer_prefetch(
        2 * w.prefetch, w.spent_s() / times(w.workers).shared() - 1,
        "; the gain may be less, since it is predicted from averages");
  }

  void offer_prefetch(int to, double gain, const char* doubt) {
    const FetchWindow& w = window_;
    if (gain < kSmallestGain) return;
    verdict_.actions.push_back(
        {.knob = "prefetch_factor",
         .from = w.prefetch,
         .to = to,
         .predicted_gain = gain,
         .cost = formatted("memory for %d more batches%s",
                           (to - w.prefetch) * w.workers, doubt)});
    best_first();
  }

  void keeps_up() {
    verdict_.cause = "the input keeps up";
    if (waits_for_batches(window_.wait_s, window_.loop_s)) {
      verdict_.actions.clear();
      verdict_.cause += formatted(
          ": batches are made %.1f times as fast as the loop takes them, and "
          "the loop waits because other programs use the processors",
          *workers_ahead(window_));
      verdict_.no_action =
          "start fewer programs, or reserve processors for this one";
      return;
    }
    if (!verdict_.actions.empty()) return;
    if (window_.has_workers)
      verdict_.cause += ": more workers would change nothing";
    verdict_.no_action =
        formatted(
            "without any waiting the loop would be %.1f%% faster",
            100 * (window_.wait_s / std::max(window_.loop_s, kShortest))) +
        ", and no known setting would gain 2 %";
  }

  const FetchWindow& window_;
  const std::optional<MakersUse> makers_;
  const std::optional<ItemCause> cause_;
  const double left_;  // share of a processor that a thread gets
  const double cpus_;  // those that other work leaves
  Verdict verdict_;
};

}  // namespace

bool waits_for_batches(double wait_s, double loop_s) {
  return wait_s > kWaits * (wait_s + loop_s);
}

Limit limit_of(const FetchWindow& window) {
  if (window.batches < kLeastBatches || window.spent_s() == 0)
    return Limit::unknown;
  return waits_for_batches(window.wait_s, window.loop_s) &&
                 !waits_in_crowd(window)
             ? Limit::data
             : Limit::compute;
}

Verdict diagnose(const FetchWindow& window) {
  return FetchDiagnosis(window).make();
}

}  // namespace penstock
