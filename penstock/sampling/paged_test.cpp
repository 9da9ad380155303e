#include "penstock/sampling/paged.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "penstock/base/hash.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

std::vector<std::int64_t> epoch_of(const Order& order, std::int64_t epoch) {
  std::vector<std::int64_t> all;
  for (std::int64_t at = 0; at < order.samples; ++at)
    all.push_back(sample_at(order, epoch, at));
  return all;
}

std::vector<std::int64_t> ascending(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(PagedOrder, EachEpochHoldsEverySampleOnce) {
  for (std::int64_t samples : {1, 2, 9, 10, 11, 64, 1000, 1001})
    for (Pages pages : {Pages{1, 1}, Pages{1, 7}, Pages{10, 1}, Pages{10, 3},
                        Pages{16, 4}, Pages{1000, 2}, Pages{5000, 5000}})
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        Order order{.samples = samples, .seed = 5, .pages = pages};
        std::vector<std::int64_t> all = epoch_of(order, epoch);
        std::ranges::sort(all);
        ASSERT_EQ(all, ascending(samples))
            << samples << " " << pages.page << " " << pages.window;
      }
}

TEST(PagedOrder, AWindowHoldsTheSamplesOfItsPagesAlone) {
  const std::int64_t samples = 1003;
  Order order{.samples = samples, .seed = 1, .pages = {10, 4}};
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> all = epoch_of(order, epoch);
    std::vector<bool> met(101);
    for (std::size_t at = 0; at < all.size();) {
      std::vector<std::int64_t> pages;
      std::size_t size = 0;
      for (; pages.size() < 4 || size > 0;) {
        if (at == all.size()) break;
        std::int64_t page = all[at] / 10;
        if (std::ranges::find(pages, page) == pages.end()) {
          if (pages.size() == 4) break;
          EXPECT_FALSE(met[static_cast<std::size_t>(page)]) << "a page twice";
          met[static_cast<std::size_t>(page)] = true;
          pages.push_back(page);
          size += page == 100 ? 3 : 10;
        }
        --size;
        ++at;
      }
      EXPECT_EQ(size, 0u) << "all of a window before the next";
    }
  }
}

TEST(PagedOrder, IsAnotherInEachEpochAndForEachSeed) {
  Order order{.samples = 500, .seed = 1, .pages = {20, 5}};
  EXPECT_NE(epoch_of(order, 0), epoch_of(order, 1));
  Order other = order;
  other.seed = 2;
  EXPECT_NE(epoch_of(order, 0), epoch_of(other, 0));
  EXPECT_EQ(epoch_of(order, 3), epoch_of(order, 3));
}

TEST(PagedOrder, TheShortPageComesAnywhere) {
  Order order{.samples = 101, .seed = 1, .pages = {10, 1}};
  std::vector<std::int64_t> places;
  for (std::int64_t epoch = 0; epoch < 30; ++epoch) {
    std::vector<std::int64_t> all = epoch_of(order, epoch);
    places.push_back(std::ranges::find(all, 100) - all.begin());
  }
  EXPECT_LT(std::ranges::min(places), 30);
  EXPECT_GT(std::ranges::max(places), 70);
}

TEST(PagedOrder, ABatchOfManyRanksIsThatOfOne) {
  Order order{.samples = 1000,
              .seed = 3,
              .batch_size = 96,
              .tail = Tail::exact,
              .pages = {30, 3}};
  Plan whole, part;
  for (std::int64_t step = 0; step < steps_per_epoch(order); ++step) {
    plan_step(order, {}, {2, step}, whole);
    std::vector<SampleRange> joined;
    for (int rank = 0; rank < 5; ++rank) {
      plan_step(order, {.rank = rank, .world = 5}, {2, step}, part);
      joined.insert(joined.end(), part.ranges.begin(), part.ranges.end());
    }
    EXPECT_EQ(joined, whole.ranges) << step;
  }
}

TEST(PagedOrder, IsTheSameForEver) {  // states that were saved go on
  Order order{.samples = 1003, .seed = 7, .pages = {16, 4}};
  std::vector<std::int64_t> all = epoch_of(order, 2);
  EXPECT_EQ(hash64(std::as_bytes(std::span(all))), 10714089203204762945u);
}

TEST(EffectiveBatch, IsTheBatchOfAnExactShuffle) {
  Order order{.samples = 100'000, .seed = 1, .batch_size = 256};
  EXPECT_NEAR(effective_batch(order), 256, 40);
}

// A batch of 256 rows of 8 pages that lie anywhere: the variance of its mean is
// that of 8 pages, and of 256 rows within them.
TEST(EffectiveBatch, IsSmallerWhereABatchComesFromFewPages) {
  Order order{
      .samples = 1'000'000, .seed = 1, .batch_size = 256, .pages = {1000, 8}};
  EXPECT_NEAR(effective_batch(order), 8, 1.5);
  order.pages.window = 1;
  EXPECT_NEAR(effective_batch(order), 1, 0.3);
  order.pages.window = 256;
  EXPECT_NEAR(effective_batch(order), 128, 30);
  order.shuffle = false;
  EXPECT_EQ(effective_batch(order), 0);
  order.shuffle = true;
  order.samples = 0;
  EXPECT_EQ(effective_batch(order), 0);
  order.samples = 3;  // fewer than a batch
  EXPECT_NEAR(effective_batch(order), 3, 1);
}

TEST(Permutation, KnowsThePositionOfASample) {
  for (std::int64_t n : {1, 2, 63, 64, 65, 1000}) {
    Permutation shuffled(n, 9);
    for (std::int64_t at = 0; at < n; ++at)
      ASSERT_EQ(shuffled.position_of(shuffled(at)), at);
  }
}

}  // namespace
}  // namespace penstock
