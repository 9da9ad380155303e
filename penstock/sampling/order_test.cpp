#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

Numbers samples_of(const Plan& plan) {
  Numbers samples;
  for (const SampleRange& range : plan.ranges) samples.push_back(range.sample);
  return samples;
}

Numbers share_of(const Order& order, Rank rank, Position at) {
  Plan plan;
  plan_step(order, rank, at, plan);
  return samples_of(plan);
}

Numbers global_batch(const Order& order, Position at) {
  return share_of(order, {0, 1}, at);
}

Numbers epoch_of(const Order& order, std::int64_t epoch) {
  Numbers all;
  for (std::int64_t step = 0; step < steps_per_epoch(order); ++step)
    for (std::int64_t sample : global_batch(order, {epoch, step}))
      all.push_back(sample);
  return all;
}

Numbers first_numbers(std::int64_t n) {
  Numbers numbers(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i)] = i;
  return numbers;
}

Numbers sorted(Numbers numbers) {
  std::ranges::sort(numbers);
  return numbers;
}

TEST(Order, CountsTheStepsOfEachTail) {
  Order order{.samples = 1000, .batch_size = 64};
  EXPECT_EQ(steps_per_epoch(order), 15);
  order.tail = Tail::pad;
  EXPECT_EQ(steps_per_epoch(order), 16);
  order.tail = Tail::exact;
  EXPECT_EQ(steps_per_epoch(order), 16);
  order.samples = 1024;
  for (Tail tail : {Tail::drop, Tail::pad, Tail::exact}) {
    order.tail = tail;
    EXPECT_EQ(steps_per_epoch(order), 16) << "a full last batch is no tail";
  }
}

TEST(Order, RefusesToDropEveryRow) {
  try {
    steps_per_epoch({.samples = 12, .batch_size = 256});
    FAIL() << "12 rows make no batch of 256";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "sampling.too_few");
    EXPECT_THAT(error.what(), HasSubstr("12 rows for a batch of 256"));
    EXPECT_THAT(error.what(), HasSubstr("loader.tail to 'pad' or 'exact'"));
    EXPECT_THAT(error.what(), HasSubstr("a smaller loader.batch_size"));
  }
}

TEST(Order, SaysThatASideIsEmpty) {
  try {
    steps_per_epoch({.samples = 0, .batch_size = 256});
    FAIL() << "no rows make no batch";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("this side has no rows"));
  }
}

TEST(Order, TakesFewerRowsThanABatchWithTheOtherTails) {
  Order order{.samples = 3, .batch_size = 5, .tail = Tail::exact};
  EXPECT_EQ(sorted(global_batch(order, {0, 0})), first_numbers(3));
  order.tail = Tail::pad;
  EXPECT_EQ(sorted(global_batch(order, {0, 0})), (Numbers{-1, -1, 0, 1, 2}));
  order.samples = 0;
  EXPECT_EQ(steps_per_epoch(order), 0);
}

TEST(Order, KeepsTheRowsInPlaceWithoutShuffle) {
  Order order{.samples = 7, .shuffle = false, .batch_size = 3};
  EXPECT_THAT(global_batch(order, {0, 1}), ElementsAre(3, 4, 5));
  EXPECT_EQ(sample_at(order, 9, 6), 6);
  order.tail = Tail::pad;
  EXPECT_THAT(global_batch(order, {0, 2}), ElementsAre(6, -1, -1));
  order.tail = Tail::exact;
  EXPECT_THAT(global_batch(order, {0, 2}), ElementsAre(6));
}

TEST(Order, DeliversEverySampleOncePerEpoch) {
  for (bool shuffle : {true, false}) {
    Order order{.samples = 1003,
                .seed = 5,
                .shuffle = shuffle,
                .batch_size = 64,
                .tail = Tail::exact};
    for (std::int64_t epoch : {0, 1, 2})
      EXPECT_EQ(sorted(epoch_of(order, epoch)), first_numbers(1003));
    order.tail = Tail::pad;
    Numbers padded = sorted(epoch_of(order, 0));
    EXPECT_EQ(padded.size(), 1024u);
    EXPECT_EQ(std::ranges::count(padded, -1), 21);
    EXPECT_EQ(Numbers(padded.begin() + 21, padded.end()), first_numbers(1003));
  }
}

TEST(Order, ChoosesTheSameSamplesInEveryEpoch) {
  Order order{.samples = 40,
              .seed = 5,
              .shuffle = false,
              .chosen_from = 1003,
              .batch_size = 16,
              .tail = Tail::exact};
  const Numbers chosen = epoch_of(order, 0);
  EXPECT_EQ(epoch_of(order, 7), chosen);
  ASSERT_EQ(chosen.size(), 40u);
  const Numbers all = sorted(chosen);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "none comes twice";
  EXPECT_GE(all.front(), 0);
  EXPECT_LT(all.back(), 1003);
  EXPECT_LT(all.front(), 200) << "from all over the side";
  EXPECT_GT(all.back(), 800);
  EXPECT_EQ(order.samples_there(), 1003);
  // More of them: the same, and others.
  order.samples = 60;
  const Numbers more = sorted(epoch_of(order, 0));
  EXPECT_TRUE(std::ranges::includes(more, all));
  order.samples = 40;
  order.seed = 6;
  EXPECT_NE(sorted(epoch_of(order, 0)), all);
}

TEST(Order, DropsWhatFillsNoBatchAndDoublesNothing) {
  Order order{.samples = 1003, .batch_size = 64};
  Numbers kept = sorted(epoch_of(order, 0));
  EXPECT_EQ(kept.size(), 960u);
  EXPECT_EQ(std::ranges::adjacent_find(kept), kept.end());
}

TEST(Order, IsAnotherInEveryEpochAndForEverySeed) {
  Order order{.samples = 2000, .seed = 1, .batch_size = 2000};
  Order other = order;
  std::int64_t same = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    auto epoch = static_cast<std::int64_t>(i);
    other.seed = order.seed = i;
    Numbers one = epoch_of(order, epoch);
    other.seed = i + 1;
    Numbers next_seed = epoch_of(other, epoch);
    Numbers next_epoch = epoch_of(order, epoch + 1);
    for (std::size_t row = 0; row < one.size(); ++row)
      same += (one[row] == next_seed[row] ? 1 : 0) +
              (one[row] == next_epoch[row] ? 1 : 0);
  }
  // Two arrangements that know nothing of each other agree in one place on
  // average: 200 +- 14 over these 200 pairs.
  EXPECT_NEAR(static_cast<double>(same), 200, 60);
}

class OrderRanks : public testing::TestWithParam<int> {};

TEST_P(OrderRanks, ShareTheGlobalBatchInRankOrder) {
  int world = GetParam();
  for (Tail tail : {Tail::drop, Tail::pad, Tail::exact}) {
    Order order{.samples = 1003, .seed = 3, .batch_size = 100, .tail = tail};
    for (std::int64_t step = 0; step < steps_per_epoch(order); ++step) {
      Position at{.epoch = 4, .step = step};
      Numbers batch = global_batch(order, at);
      Numbers joined;
      for (int rank = 0; rank < world; ++rank) {
        Numbers share = share_of(order, {rank, world}, at);
        auto even = std::ssize(batch) / world;
        EXPECT_THAT(std::ssize(share), testing::AnyOf(even, even + 1));
        joined.insert(joined.end(), share.begin(), share.end());
      }
      EXPECT_EQ(joined, batch);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, OrderRanks, testing::Values(1, 2, 3, 7, 1024));

TEST(Order, JumpsToAnyStepAsIfItHadWalked) {
  Order order{.samples = 333, .seed = 8, .batch_size = 50, .tail = Tail::exact};
  Position walked;
  for (std::int64_t i = 0; i < 40; ++i) {
    Position jumped{i / 7, i % 7};
    ASSERT_EQ(walked, jumped);
    Numbers batch = global_batch(order, jumped);
    for (std::size_t row = 0; row < batch.size(); ++row)
      ASSERT_EQ(batch[row],
                sample_at(order, jumped.epoch,
                          jumped.step * 50 + static_cast<std::int64_t>(row)));
    walked = next_position(order, walked);
  }
}

TEST(Plan, HoldsOneWholeSamplePerBin) {
  Plan plan;
  plan_step({.samples = 100, .batch_size = 4}, {1, 2}, {2, 3}, plan);
  EXPECT_EQ(plan.at, (Position{2, 3}));
  EXPECT_THAT(plan.bin_ends, ElementsAre(1, 2));
  for (const SampleRange& range : plan.ranges) {
    EXPECT_EQ(range.begin, 0);
    EXPECT_EQ(range.end, SampleRange::kToItsEnd);
  }
}

TEST(Plan, KeepsItsMemory) {
  Order order{.samples = 1000, .batch_size = 64};
  Plan plan;
  plan_step(order, {}, {}, plan);
  const SampleRange* ranges = plan.ranges.data();
  const std::int32_t* ends = plan.bin_ends.data();
  plan_step(order, {}, {0, 9}, plan);
  EXPECT_EQ(plan.ranges.data(), ranges);
  EXPECT_EQ(plan.bin_ends.data(), ends);
}

TEST(Plan, RefusesPlacesThatAreNotThere) {
  Order order{.samples = 100, .batch_size = 10};
  Plan plan;
  EXPECT_THROW(plan_step(order, {}, {0, 10}, plan), Error);
  EXPECT_THROW(plan_step(order, {2, 2}, {0, 0}, plan), Error);
  EXPECT_THROW(sample_at(order, 0, 100), Error);
}

TEST(Order, OfABillionSamplesOnAThousandRanksTakesNoMemory) {
  constexpr int kWorld = 1024;
  Order order{.samples = 1'000'000'000, .seed = 2, .batch_size = 1 << 16};
  EXPECT_EQ(steps_per_epoch(order), 15258);
  Plan plan;
  Numbers seen;
  for (std::int64_t step : {0, 1, 7777, 15257}) {
    Numbers batch = global_batch(order, {3, step});
    std::size_t at = 0;
    for (int rank = 0; rank < kWorld; ++rank) {
      plan_step(order, {rank, kWorld}, {3, step}, plan);
      ASSERT_EQ(plan.ranges.size(), 64u);
      for (const SampleRange& range : plan.ranges)
        ASSERT_EQ(range.sample, batch[at++]);
    }
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  EXPECT_LE(plan.ranges.capacity(), 64u) << "a rank holds its share alone";
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
  EXPECT_GE(seen.front(), 0);
  EXPECT_LT(seen.back(), order.samples);
}

// Saved positions mean something only as long as these numbers stay. They come
// from an independent implementation of the same rules.
TEST(Order, IsTheOneThatSavedRunsRelyOn) {
  Order order{.samples = 4030, .seed = 17, .batch_size = 8};
  EXPECT_THAT(global_batch(order, {0, 0}),
              ElementsAre(2171, 1787, 3849, 3079, 2423, 3989, 2934, 414));
  EXPECT_THAT(global_batch(order, {3, 100}),
              ElementsAre(220, 1290, 1405, 3681, 2050, 1645, 2866, 3451));
  order = {.samples = 1'000'000'000, .seed = 17, .batch_size = 4};
  EXPECT_THAT(global_batch(order, {0, 0}),
              ElementsAre(240327607, 329454547, 258769724, 783110762));
  order = {.samples = 3, .seed = 1, .batch_size = 1};
  EXPECT_EQ(sample_at(order, 0, 0), 0);
  EXPECT_EQ(sample_at(order, 1, 0), 2);
  EXPECT_EQ(sample_at(order, 2, 0), 0);
}

}  // namespace
}  // namespace penstock
