#include <algorithm>
#include <numeric>

#include "penstock/advisor/advisor.h"
#include "penstock/base/formatted.h"

namespace penstock {
namespace {

using Making = FetchWindow::Making;

constexpr double kLargest = 0.5;    // of the making: the collating is the stage
constexpr double kSlow = 10;        // times the median: an item stands out
constexpr double kSlowShare = 0.2;  // of the making, by those that stand out
constexpr double kFewSlow = 0.05;   // of the items
constexpr double kComputing = 0.7;  // of its time, on a processor
constexpr double kCrowdedOut = 0.6;  // of its time, without a processor
constexpr double kWaitsIn = 0.3;     // of what was seen waiting
constexpr std::int64_t kFewestSeen = 10;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::optional<ItemCause> collating(const FetchWindow& window, double batches) {
  const Making& making = *window.making;
  const double all = making.item_s + making.collate_s;
  if (share(making.collate_s, all) < kLargest) return std::nullopt;
  return ItemCause{
      .stage = "collate_fn",
      .cause = formatted("collate_fn takes %.2f ms of the %.2f ms that a batch "
                         "takes, and is on a processor for %.0f %% of its time",
                         1e3 * making.collate_s / batches, 1e3 * all / batches,
                         100 * share(making.collate_cpu_s, making.collate_s)),
      .next = formatted("make collate_fn cheaper: move work that concerns one "
                        "item into %s, and copy arrays instead of lists",
                        made_by(window))};
}

/// Other work has the processors that the items need. That makes some of them
/// slow at random, too.
std::optional<ItemCause> crowded(const FetchWindow& window, double items) {
  const Making& making = *window.making;
  const double computes = share(making.item_cpu_s, making.item_s);
  const double running =
      share(double(making.seen.running), double(making.seen.total()));
  // The kernel calls a thread runnable, too, that has no processor.
  if (making.seen.looks < kFewestSeen || running <= computes + kCrowdedOut)
    return std::nullopt;
  return ItemCause{
      .stage = made_by(window),
      .cause = formatted("%s takes %.2f ms: it computes for %.0f %% of that "
                         "and mostly waits for a processor for the rest, since "
                         "other threads or programs use the processors",
                         made_by(window), 1e3 * making.item_s / items,
                         100 * computes),
      .next =
          "start fewer workers or programs, or reserve processors for this "
          "program (taskset, a container's --cpus)"};
}

/// A few items take so long that those after them wait.
std::optional<ItemCause> single_items(const FetchWindow& window) {
  const Making& making = *window.making;
  std::vector<double> times = making.seconds;
  if (times.empty()) return std::nullopt;
  auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  const double median = *middle;
  const double all = std::accumulate(times.begin(), times.end(), 0.0);
  const auto n = static_cast<double>(times.size());
  // Of items that take microseconds, many take ten times as long as others. One
  // that is slow also takes longer than the mean.
  const double most = std::max(kSlow * median, all / n);
  double slow = 0;
  std::int64_t count = 0;
  for (double time : times) {
    if (time <= most) continue;
    slow += time;
    ++count;
  }
  if (share(slow, all) < kSlowShare ||
      static_cast<double>(count) > kFewSlow * n)
    return std::nullopt;
  return ItemCause{
      // One after the other, each item is waited for in any case.
      .limit = window.workers > 0 ? Limit::order : Limit::data,
      .stage = made_by(window),
      .cause =
          formatted("one item in %.0f takes more than ten times the median "
                    "of %.3g ms, the longest, ",
                    n / static_cast<double>(count), 1e3 * median) +
          making.slowest + formatted(", %.0f ms", 1e3 * making.slowest_s) +
          (window.workers > 0 ? "; the batches after it wait" : ""),
      .next =
          "examine that item; a larger prefetch_factor or in_order=False lets "
          "the other items continue"};
}

/// Whether this is a good part of what was seen waiting.
bool waits_in(const ThreadSightings& seen,
              std::int64_t ThreadSightings::*what) {
  return seen.looks_waiting() >= kFewestSeen &&
         share(double(seen.*what), double(seen.waiting())) >= kWaitsIn;
}

struct Waiting {
  std::int64_t ThreadSightings::*seen;
  const char* cause;
  const char* next;
};
constexpr Waiting kForLock = {
    &ThreadSightings::in_lock,
    "waits for a lock that another worker, thread or process holds",
    "more workers would wait for the same lock: hold it for a shorter time, or "
    "give each worker its own file, connection or reader"};
constexpr Waiting kKinds[] = {
    kForLock,
    {&ThreadSightings::in_own_lock,
     "waits for another thread of its own process, or for a lock within the "
     "process",
     "find out what these threads do: more workers have their own threads and "
     "locks"},
    {&ThreadSightings::in_network, "waits for replies from the network",
     "read many items with one request: __getitems__ gets a batch's indices, "
     "and __iter__ can read ahead"},
    {&ThreadSightings::in_file, "waits for storage",
     "put the files on a faster drive, or read larger pieces"},
    {&ThreadSightings::asleep, "sleeps", "look for a sleep or pause in it"},
};

/// What makes the items does while it takes its time.
std::optional<ItemCause> items_in(const FetchWindow& window, double items) {
  const Making& making = *window.making;
  const std::string took = formatted("%s takes %.2f ms, ", made_by(window),
                                     1e3 * making.item_s / items);
  const double computes = share(making.item_cpu_s, making.item_s);
  if (computes > kComputing * making.cpu_share)
    return ItemCause{
        .stage = made_by(window),
        .cause = took +
                 formatted("of which it computes for %.0f %%", 100 * computes),
        .next = "make an item cheaper, or cache its result"};
  const ThreadSightings& seen = making.seen;
  for (const Waiting& kind : kKinds) {
    if (!waits_in(seen, kind.seen)) continue;
    return ItemCause{.stage = made_by(window),
                     .cause = took + "and mostly " + kind.cause,
                     .next = kind.next};
  }
  return ItemCause{
      .stage = made_by(window),
      .cause = took + formatted("and is on a processor for %.0f %% of that: it "
                                "waits for something",
                                100 * computes),
      .next = "find out what it waits for: storage, the network or a lock"};
}

}  // namespace

std::optional<ItemCause> cause_in_items(const FetchWindow& window) {
  if (!window.making || window.items == 0 || window.batches == 0)
    return std::nullopt;
  const Making& making = *window.making;
  if (making.item_s + making.collate_s <= 0) return std::nullopt;
  // Workers are ahead of the loop: what they made may be more.
  const auto items = static_cast<double>(
      window.workers > 0 ? std::max(window.worker_items, window.items)
                         : window.items);
  const double batches = items * static_cast<double>(window.batches) /
                         static_cast<double>(window.items);
  if (auto found = collating(window, batches)) return found;
  if (auto found = crowded(window, items)) return found;
  if (auto found = single_items(window)) return found;
  return items_in(window, items);
}

bool waits_in_lock(const FetchWindow& window) {
  if (window.making)
    return waits_in(window.making->seen, &ThreadSightings::in_lock);
  if (!window.looked || window.looked->looks < kFewestSeen) return false;
  return share(double(window.looked->in_lock), double(window.looked->looks)) >=
         kWaitsIn;
}

const char* instead_of_lock() { return kForLock.next; }

const char* made_by(const FetchWindow& window) {
  return window.iterable ? "__iter__" : "__getitem__";
}

}  // namespace penstock
