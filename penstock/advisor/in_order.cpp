#include "penstock/advisor/in_order.h"

#include <algorithm>
#include <vector>

#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr std::int64_t kSteadyBatches = 256;  // the first ones count little

/// So many that each is gone through, in whole epochs.
std::int64_t batches_of(const InOrder& loop) {
  const std::int64_t count = std::max(kSteadyBatches, std::ssize(loop.batch_s));
  if (loop.epoch == 0 || loop.epoch >= count) return count;
  return (count + loop.epoch - 1) / loop.epoch * loop.epoch;
}

}  // namespace

// With N batches under way at most, one recurrence for each batch b:
//   asked(b)  when the loop took batch b - N, or when the epoch began
//   made(b)   max(its worker is free, asked(b)) + its time
//   taken(b)  max(made(b), the loop is done with batch b - 1)
// What is returned is the time between two batches once the first one is there.
double seconds_in_order(const InOrder& loop) {
  PENSTOCK_ASSERT(!loop.batch_s.empty() && loop.workers > 0,
                  "somebody makes batches");
  const std::int64_t count = batches_of(loop);
  const std::int64_t on_their_way =
      std::max<std::int64_t>(1, std::int64_t{loop.workers} * loop.depth);
  std::vector<double> free(static_cast<std::size_t>(loop.workers));
  std::vector<double> taken;
  taken.reserve(static_cast<std::size_t>(count) + 1);
  std::int64_t first = 0;  // batch of the epoch, which
  double began = 0;        // then
  double left = 0;         // the loop is done with the batch before
  for (std::int64_t batch = 0; batch <= count; ++batch) {
    if (loop.epoch > 0 && batch % loop.epoch == 0) {
      first = batch;
      began = left;
    }
    const std::int64_t behind = batch - on_their_way;
    const double asked =
        behind < first ? began : taken[static_cast<std::size_t>(behind)];
    const auto worker = loop.in_turn
                            ? free.begin() + (batch - first) % loop.workers
                            : std::ranges::min_element(free);
    *worker =
        std::max(*worker, asked) +
        loop.batch_s[static_cast<std::size_t>(batch) % loop.batch_s.size()];
    taken.push_back(std::max(*worker, left));
    left = taken.back() + loop.loop_s;
  }
  return (taken.back() - taken.front()) / static_cast<double>(count);
}

}  // namespace penstock
