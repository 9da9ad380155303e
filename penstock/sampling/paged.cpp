#include "penstock/sampling/paged.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/base/random.h"

// Positions are cut into slots, one for each page, and slots into windows. All
// slots are as long as a page but that of the last page, which may be shorter
// and comes anywhere: where it is tells the inverse of the shuffle.

namespace penstock {
namespace {

constexpr std::uint64_t kPages = 0x7061676573;     // "pages"
constexpr std::uint64_t kWindow = 0x77696e646f77;  // "window"

std::uint64_t key_of(std::uint64_t seed, std::int64_t epoch, std::int64_t of,
                     std::uint64_t what) {
  return Random(seed, static_cast<std::uint64_t>(epoch),
                static_cast<std::uint64_t>(of), what)
      .next();
}

}  // namespace

// `missing_` is how much shorter the last page is. All slots from the one after
// `short_slot_` on begin that much earlier, which is the only irregularity in
// start_of() and slot_of().
PagedOrder::PagedOrder(std::int64_t samples, Pages pages, std::uint64_t seed,
                       std::int64_t epoch)
    : pages_(pages),
      seed_(seed),
      epoch_(epoch),
      count_((samples - 1) / pages.page + 1),
      pages_shuffled_(count_, key_of(seed, epoch, 0, kPages)),
      missing_(count_ * pages.page - samples),
      short_slot_(pages_shuffled_.position_of(count_ - 1)) {
  PENSTOCK_ASSERT(pages.page > 0 && pages.window > 0,
                  "pages and windows hold something");
}

std::int64_t PagedOrder::start_of(std::int64_t slot) const {
  return slot * pages_.page - (slot > short_slot_ ? missing_ : 0);
}

std::int64_t PagedOrder::slot_of(std::int64_t position) const {
  std::int64_t behind = start_of(short_slot_ + 1);
  return (position + (position >= behind ? missing_ : 0)) / pages_.page;
}

Permutation PagedOrder::within(std::int64_t window,
                               std::int64_t samples) const {
  return Permutation(samples, key_of(seed_, epoch_, window, kWindow));
}

void PagedOrder::range(std::int64_t first,
                       std::span<std::int64_t> samples) const {
  while (!samples.empty()) {
    const std::int64_t window = slot_of(first) / pages_.window;
    const std::int64_t begin = start_of(window * pages_.window);
    const std::int64_t end =
        start_of(std::min(count_, (window + 1) * pages_.window));
    auto some = samples.first(static_cast<std::size_t>(
        std::min<std::int64_t>(std::ssize(samples), end - first)));
    within(window, end - begin).range(first - begin, some);
    for (std::int64_t& sample : some) {
      std::int64_t at = begin + sample, slot = slot_of(at);
      sample = pages_shuffled_(slot) * pages_.page + (at - start_of(slot));
    }
    first += std::ssize(some);
    samples = samples.subspan(some.size());
  }
}

}  // namespace penstock
