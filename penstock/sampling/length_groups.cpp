#include "penstock/sampling/length_groups.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"

// transformers/trainer_pt_utils.py: a group has min(n / (4 * batch), 50)
// batches, at least one. Positions within a group are ranks by length: for a
// batch its ranks alone are selected, without sorting the group.

namespace penstock {
namespace {

constexpr std::int64_t kMostBatches = 50;

}  // namespace

LengthGroups::LengthGroups(std::vector<std::int32_t> lengths, How how,
                           std::int64_t batch_size)
    : lengths_(std::move(lengths)), how_(how), batch_size_(batch_size) {
  PENSTOCK_ASSERT(batch_size >= 1, "a batch has samples");
  const std::int64_t batches =
      std::clamp<std::int64_t>(samples() / (4 * batch_size), 1, kMostBatches);
  group_size_ = batches * batch_size;
  for (std::int32_t length : lengths_) most_ = std::max(most_, length);
  // Where more are the longest, one of them soon comes by itself.
  constexpr std::size_t kFew = 1024;
  for (std::size_t s = 0; s < lengths_.size() && longest_.size() <= kFew; ++s)
    if (lengths_[s] == most_) longest_.push_back(static_cast<std::int64_t>(s));
  if (longest_.size() > kFew) longest_.clear();
}

void LengthGroups::fill(const Permutation& order, std::uint64_t key,
                        std::int64_t first, std::span<SampleRange> to) const {
  if (how_ != How::buckets) return fill_sorted(order, first, to);
  const std::int64_t full = samples() / batch_size_;
  const Permutation batches(std::max<std::int64_t>(full, 1), key);
  while (!to.empty()) {
    const std::int64_t batch = first / batch_size_,
                       within = first % batch_size_;
    const auto count = static_cast<std::size_t>(
        std::min(batch_size_ - within, std::ssize(to)));
    const std::int64_t from = batch < full ? batches(batch) : batch;
    fill_sorted(order, from * batch_size_ + within, to.first(count));
    first += static_cast<std::int64_t>(count);
    to = to.subspan(count);
  }
}

/// As fill(), without an order of the batches.
/// The longest come first, and of equal lengths the one that the permutation
/// has first: a strict order, so that what is selected does not depend on how.
/// Two selections and a sort of the wanted ranks cost O(group + k log k).
void LengthGroups::fill_sorted(const Permutation& order, std::int64_t first,
                               std::span<SampleRange> to) const {
  struct Ranked {
    std::int32_t length;
    std::int32_t place;  // within the group
    bool operator<(const Ranked& other) const {
      return length != other.length ? length > other.length
                                    : place < other.place;
    }
  };
  std::vector<std::int64_t> group;
  std::vector<Ranked> ranked;
  const std::span<SampleRange> all = to;
  for (std::int64_t at = first; !to.empty();) {
    const std::int64_t begin = at / group_size_ * group_size_;
    const std::int64_t size = std::min(group_size_, samples() - begin);
    const auto count =
        static_cast<std::size_t>(std::min(begin + size - at, std::ssize(to)));
    group.resize(static_cast<std::size_t>(size));
    order.range(begin, group);
    ranked.resize(group.size());
    for (std::size_t i = 0; i < group.size(); ++i)
      ranked[i] = {lengths_[static_cast<std::size_t>(group[i])],
                   static_cast<std::int32_t>(i)};
    const auto from = ranked.begin() + (at - begin);
    const auto end = from + static_cast<std::ptrdiff_t>(count);
    if (from != ranked.begin())
      std::nth_element(ranked.begin(), from, ranked.end());
    if (end != ranked.end()) std::nth_element(from, end, ranked.end());
    std::sort(from, end);
    for (std::size_t i = 0; i < count; ++i)
      to[i] = {.sample = group[static_cast<std::size_t>(
                   from[static_cast<std::ptrdiff_t>(i)].place)]};
    at += static_cast<std::int64_t>(count);
    to = to.subspan(count);
  }
  if (how_ == How::hf) put_longest_first(order, first, all);
}

/// The position of the first of the longest samples.
std::int64_t LengthGroups::first_longest(const Permutation& order) const {
  std::int64_t least = samples();
  for (std::int64_t sample : longest_)
    least = std::min(least, order.position_of(sample));
  if (!longest_.empty()) return least;
  for (least = 0; least < samples(); ++least)
    if (lengths_[static_cast<std::size_t>(order(least))] == most_) break;
  return least;
}

/// It changes places with the first sample of the first group.
void LengthGroups::put_longest_first(const Permutation& order,
                                     std::int64_t first,
                                     std::span<SampleRange> to) const {
  const std::int64_t at = first_longest(order);
  const std::int64_t its = at / group_size_ * group_size_;
  const std::int64_t end = first + std::ssize(to);
  if (its == 0) return;
  if (first == 0) to[0] = {.sample = order(at)};
  if (its < first || its >= end) return;
  // What stood first: of the longest of the first group the one before others.
  std::vector<std::int64_t> group(static_cast<std::size_t>(group_size_));
  order.range(0, group);
  const std::int64_t replaced =
      *std::ranges::max_element(group, {}, [&](std::int64_t sample) {
        return lengths_[static_cast<std::size_t>(sample)];
      });
  to[static_cast<std::size_t>(its - first)] = {.sample = replaced};
}

}  // namespace penstock
