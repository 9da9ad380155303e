#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

// Keeps these draws apart from all others under the same seed and epoch.
constexpr std::uint64_t kShuffle = 0x6f72646572;  // "order"
constexpr std::uint64_t kGroups = 0x67726f7570;   // "group"
constexpr std::uint64_t kChoice = 0x6669786564;   // "fixed"

Permutation permutation_of(const Order& order, std::int64_t epoch) {
  Random random(order.seed, static_cast<std::uint64_t>(epoch), 0, kShuffle);
  return Permutation(order.samples, random.next());
}

/// Of it the first `samples` are taken.
Permutation chosen(const Order& order) {
  Random random(order.seed, 0, 0, kChoice);
  return Permutation(order.chosen_from, random.next());
}

template <class Shuffled>
void fill_from(const Shuffled& shuffled, std::int64_t first,
               std::span<SampleRange> ranges) {
  std::array<std::int64_t, 1024> samples;
  while (!ranges.empty()) {
    std::size_t count = std::min(samples.size(), ranges.size());
    shuffled.range(first, std::span(samples).first(count));
    for (std::size_t i = 0; i < count; ++i) ranges[i] = {.sample = samples[i]};
    first += static_cast<std::int64_t>(count);
    ranges = ranges.subspan(count);
  }
}

void fill_samples(const Order& order, std::int64_t epoch, std::int64_t first,
                  std::span<SampleRange> ranges);

/// The samples of a mixture: each is the one that stands in its place in the
/// order of its source, whose epochs are the passes over it.
void fill_mixed(const Order& order, std::int64_t epoch, std::int64_t first,
                std::span<SampleRange> ranges) {
  const Mixture& mixture = *order.mixture;
  std::vector<Order> within;
  for (std::size_t s = 0; s < mixture.sources(); ++s)
    within.push_back({.samples = mixture.shares()[s].samples,
                      .seed = seed_of_source(order.seed, s),
                      .shuffle = order.shuffle,
                      .pages = order.pages});
  std::vector<MixturePlace> places(ranges.size());
  mixture.places(order.seed, order.shuffle, epoch, first, places);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const MixturePlace& at = places[i];
    fill_samples(within[at.source], at.pass, at.at, ranges.subspan(i, 1));
    ranges[i].sample += mixture.first_of(at.source);
  }
}

/// Writes the samples at the positions from `first` on.
void fill_samples(const Order& order, std::int64_t epoch, std::int64_t first,
                  std::span<SampleRange> ranges) {
  if (order.mixture != nullptr) return fill_mixed(order, epoch, first, ranges);
  if (order.draws != nullptr)
    return order.draws->draw(order.seed, epoch, first, ranges);
  if (order.chosen_from > 0) return fill_from(chosen(order), first, ranges);
  if (!order.shuffle) {
    for (SampleRange& range : ranges) range = {.sample = first++};
    return;
  }
  if (order.pages)
    return fill_from(PagedOrder(order.samples, order.pages, order.seed, epoch),
                     first, ranges);
  if (order.groups == nullptr)
    return fill_from(permutation_of(order, epoch), first, ranges);
  Random random(order.seed, static_cast<std::uint64_t>(epoch), 0, kGroups);
  order.groups->fill(permutation_of(order, epoch), random.next(), first,
                     ranges);
}

[[noreturn]] void refuse_too_few(const Order& order) {
  std::string rows = std::to_string(order.samples);
  throw Error(
      ErrorKind::request,
      {.code = "sampling.too_few",
       .what = "cannot make a single batch",
       .where = "loader.batch_size",
       .why = "there are " + rows + " rows for a batch of " +
              std::to_string(order.batch_size) +
              ", and the tail 'drop' leaves out rows that do not fill a batch",
       .next = order.samples == 0
                   ? "check 'where' and 'split': this side has no rows"
                   : "set loader.tail to 'pad' or 'exact', or a smaller "
                     "loader.batch_size: at most " +
                         rows});
}

}  // namespace

std::int64_t steps_per_epoch(const Order& order) {
  PENSTOCK_ASSERT(order.samples >= 0 && order.batch_size >= 1,
                  "an order has samples and a batch size");
  std::int64_t full = order.samples / order.batch_size;
  if (order.tail != Tail::drop)
    return full + (order.samples % order.batch_size != 0 ? 1 : 0);
  if (full == 0) refuse_too_few(order);
  return full;
}

std::int64_t sample_at(const Order& order, std::int64_t epoch,
                       std::int64_t position) {
  PENSTOCK_ASSERT(position >= 0 && position < order.samples,
                  "a position lies within its epoch");
  SampleRange range;
  fill_samples(order, epoch, position, std::span(&range, 1));
  return range.sample;
}

// Rank r of w takes the rows [r n / w, (r + 1) n / w) of a batch of n: together
// the ranks take each row once, and their shares differ by one row at most.
// Nothing is remembered from step to step, so any step can be planned first.
void plan_step(const Order& order, Rank rank, Position at, Plan& plan) {
  PENSTOCK_ASSERT(rank.rank >= 0 && rank.rank < rank.world,
                  "a rank lies within its world");
  PENSTOCK_ASSERT(at.step >= 0 && at.step < steps_per_epoch(order),
                  "a step lies within its epoch");
  std::int64_t first = at.step * order.batch_size;
  std::int64_t left = std::min(order.batch_size, order.samples - first);
  std::int64_t shared = order.tail == Tail::exact ? left : order.batch_size;
  std::int64_t begin = rank.rank * shared / rank.world;
  std::int64_t end = (rank.rank + 1) * shared / rank.world;

  plan.at = at;
  plan.occurrences.clear();
  plan.ranges.resize(static_cast<std::size_t>(end - begin));
  auto filled = std::max<std::int64_t>(0, std::min(end, left) - begin);
  auto rows = std::span(plan.ranges).first(static_cast<std::size_t>(filled));
  if (!rows.empty()) fill_samples(order, at.epoch, first + begin, rows);
  for (SampleRange& padded : std::span(plan.ranges).subspan(rows.size()))
    padded = {.sample = -1};
  if (order.draws != nullptr || order.mixture != nullptr) {
    plan.occurrences.resize(plan.ranges.size());
    std::iota(plan.occurrences.begin(), plan.occurrences.end(), first + begin);
  }
  plan.bin_ends.resize(plan.ranges.size());
  std::iota(plan.bin_ends.begin(), plan.bin_ends.end(), 1);
}

// Of ranks that are drawn at random, r / n, the mean of b has the variance
// 1 / (12 b).
// So the variance of the means of real batches says how many independent draws
// they are worth: an order that reads neighbours together yields means that
// vary more, as those of a smaller batch would.
double effective_batch(const Order& of) {
  Order order = of;
  order.tail = Tail::exact;
  order.batch_size = std::min(order.batch_size, order.samples);
  if (!order.shuffle || order.samples == 0) return 0;
  constexpr std::int64_t kDraws = std::int64_t{1} << 18;
  constexpr std::uint64_t kStep = 0x6d69786564;  // "mixed"
  const std::int64_t steps = steps_per_epoch(order);
  const std::int64_t there = order.samples_there();
  const std::int64_t batches =
      std::clamp<std::int64_t>(kDraws / order.batch_size, 32, 1024);
  double squares = 0;
  Plan plan;
  for (std::int64_t epoch = 0; epoch < batches; ++epoch) {
    Random random(order.seed, static_cast<std::uint64_t>(epoch), 0, kStep);
    auto step = static_cast<std::int64_t>(
        random.below(static_cast<std::uint64_t>(steps)));
    plan_step(order, {}, {epoch, step}, plan);
    double sum = 0;
    std::int64_t count = 0;
    for (const SampleRange& range : plan.ranges) {
      if (range.sample < 0) continue;
      sum += static_cast<double>(2 * range.sample + 1 - there);
      ++count;
    }
    double mean = sum / static_cast<double>(2 * count * there);
    squares += mean * mean;
  }
  double variance = squares / static_cast<double>(batches);
  auto most = static_cast<double>(order.samples);
  return variance * 12 * most < 1 ? most : std::max(1.0, 1 / (12 * variance));
}

Position next_position(const Order& order, Position at) {
  if (at.step + 1 < steps_per_epoch(order)) return {at.epoch, at.step + 1};
  return {at.epoch + 1, 0};
}

}  // namespace penstock
