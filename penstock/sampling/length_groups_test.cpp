#include "penstock/sampling/length_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

using How = LengthGroups::How;
using Numbers = std::vector<std::int64_t>;

std::vector<std::int32_t> some_lengths(std::int64_t count, std::uint64_t most) {
  Random random(3, 1, 4, 1);
  std::vector<std::int32_t> lengths;
  for (std::int64_t i = 0; i < count; ++i)
    lengths.push_back(static_cast<std::int32_t>(1 + random.below(most)));
  return lengths;
}

Numbers shuffled(const Permutation& order, std::int64_t count) {
  Numbers all(static_cast<std::size_t>(count));
  order.range(0, all);
  return all;
}

/// get_length_grouped_indices() of transformers, step by step as written
/// there, over a permutation of ours.
Numbers as_transformers(const std::vector<std::int32_t>& lengths,
                        std::int64_t batch, const Permutation& order) {
  const auto n = std::ssize(lengths);
  std::int64_t multiple = std::min<std::int64_t>(n / (batch * 4), 50);
  if (multiple == 0) multiple = 1;
  const Numbers indices = shuffled(order, n);
  auto length = [&](std::int64_t i) {
    return lengths[static_cast<std::size_t>(i)];
  };
  std::vector<Numbers> groups;
  for (std::int64_t i = 0; i < n; i += multiple * batch) {
    groups.emplace_back(indices.begin() + i,
                        indices.begin() + std::min(n, i + multiple * batch));
    std::ranges::stable_sort(groups.back(), std::greater(), length);
  }
  std::size_t longest = 0;
  for (std::size_t g = 1; g < groups.size(); ++g)
    if (length(groups[g][0]) > length(groups[longest][0])) longest = g;
  std::swap(groups[0][0], groups[longest][0]);
  Numbers all;
  for (const Numbers& group : groups)
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

Numbers epoch_of(const LengthGroups& groups, const Permutation& order,
                 std::uint64_t key, std::int64_t count, std::int64_t piece) {
  Numbers all;
  for (std::int64_t first = 0; first < count; first += piece) {
    std::vector<SampleRange> some(
        static_cast<std::size_t>(std::min(piece, count - first)));
    groups.fill(order, key, first, some);
    for (const SampleRange& range : some) all.push_back(range.sample);
  }
  return all;
}

TEST(LengthGroups, GivesTheOrderOfTransformersInPiecesOfAnySize) {
  for (std::int64_t count : {1, 7, 64, 1000, 3001})
    for (std::uint64_t most : {1U, 5U, 4000U})
      for (std::int64_t batch : {1, 8, 32})
        for (std::uint64_t key : {1U, 2U, 3U}) {
          const auto lengths = some_lengths(count, most);
          const LengthGroups groups(lengths, How::hf, batch);
          const Permutation order(count, key);
          const Numbers expected = as_transformers(lengths, batch, order);
          for (std::int64_t piece : {std::int64_t{5}, batch, count})
            EXPECT_EQ(epoch_of(groups, order, 0, count, piece), expected)
                << count << " of " << most << ", " << batch << " by " << piece;
        }
}

TEST(LengthGroups, BucketsAreTheBatchesOfGroupsInAKeyedOrder) {
  const std::int64_t count = 5003, batch = 16;
  const auto lengths = some_lengths(count, 2000);
  const LengthGroups groups(lengths, How::buckets, batch);
  const Permutation order(count, 7);
  const Numbers sorted =
      epoch_of(LengthGroups(lengths, How::none, batch), order, 0, count, batch);
  const Numbers epoch = epoch_of(groups, order, 11, count, batch);
  EXPECT_EQ(epoch_of(groups, order, 11, count, 3), epoch);
  auto batches = [&](const Numbers& of) {
    std::vector<Numbers> all;
    for (std::int64_t at = 0; at < count; at += batch)
      all.emplace_back(of.begin() + at,
                       of.begin() + std::min(count, at + batch));
    return all;
  };
  EXPECT_THAT(batches(epoch),
              testing::UnorderedElementsAreArray(batches(sorted)));
  EXPECT_NE(epoch, sorted);
  EXPECT_NE(epoch_of(groups, order, 12, count, batch), epoch);
  EXPECT_EQ(batches(epoch).back(), batches(sorted).back()) << "is not full";
}

/// Elements over what the batches are padded to.
double fullness(const Order& order, const std::vector<std::int32_t>& lengths) {
  double all = 0, places = 0;
  Plan plan;
  for (std::int64_t step = 0; step < steps_per_epoch(order); ++step) {
    plan_step(order, {}, {0, step}, plan);
    std::int32_t most = 0;
    for (const SampleRange& range : plan.ranges) {
      const auto length = lengths[static_cast<std::size_t>(range.sample)];
      most = std::max(most, length);
      all += length;
    }
    places +=
        static_cast<double>(most) * static_cast<double>(plan.ranges.size());
  }
  return all / places;
}

TEST(LengthGroups, LeavesLittlePaddingInABatch) {
  const auto lengths = some_lengths(20'000, 2048);
  Order order{.samples = std::ssize(lengths), .seed = 5, .batch_size = 16};
  EXPECT_LT(fullness(order, lengths), 0.6);
  for (How how : {How::buckets, How::hf}) {
    order.groups = std::make_shared<LengthGroups>(lengths, how, 16);
    EXPECT_GT(fullness(order, lengths), 0.97);
  }
}

TEST(LengthGroups, RanksShareAnEpochAndEpochsDiffer) {
  const auto lengths = some_lengths(1000, 100);
  Order order{
      .samples = 1000, .seed = 5, .batch_size = 30, .tail = Tail::exact};
  order.groups = std::make_shared<LengthGroups>(lengths, How::buckets, 30);
  std::vector<Numbers> epochs(2);
  for (std::int64_t epoch : {0, 1})
    for (std::int64_t step = 0; step < steps_per_epoch(order); ++step)
      for (int rank = 0; rank < 4; ++rank) {
        Plan plan;
        plan_step(order, {rank, 4}, {epoch, step}, plan);
        for (const SampleRange& range : plan.ranges)
          epochs[static_cast<std::size_t>(epoch)].push_back(range.sample);
      }
  EXPECT_NE(epochs[0], epochs[1]);
  for (Numbers& epoch : epochs) {
    std::ranges::sort(epoch);
    for (std::int64_t i = 0; i < 1000; ++i)
      ASSERT_EQ(epoch[static_cast<std::size_t>(i)], i);
  }
}

}  // namespace
}  // namespace penstock
