#include "penstock/sampling/side_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

std::string row(int i) { return "row " + std::to_string(i); }

std::vector<SampleId> ids_of(const SideIndex& index,
                             std::vector<std::int64_t> ranks) {
  index.select(ranks);
  return ranks;
}

TEST(SideIndex, OfEverythingCostsNothing) {
  SideIndex index(1000);
  EXPECT_EQ(index.size(), 1000);
  EXPECT_EQ(index.select(999), 999);
  EXPECT_EQ(index.memory(), 0u);
  EXPECT_TRUE(index.contains(999));
  EXPECT_FALSE(index.contains(1000));
  EXPECT_FALSE(index.contains(-1));
  EXPECT_EQ(SideIndex(std::vector<bool>(77, true)).memory(), 0u);
}

class SideIndexOf : public testing::TestWithParam<double> {};

TEST_P(SideIndexOf, FindsTheSamplesInOrder) {
  for (int rows : {1, 63, 64, 65, 511, 512, 513, 1024, 5000}) {
    std::vector<bool> on_side;
    std::vector<SampleId> expected;
    Split split{.train = GetParam()};
    for (int i = 0; i < rows; ++i) {
      on_side.push_back(side_of(split, row(i)) == Side::train);
      if (on_side.back()) expected.push_back(i);
    }
    SideIndex index(on_side);
    ASSERT_EQ(index.size(), std::ssize(expected));
    for (std::int64_t nth = 0; nth < index.size(); ++nth)
      ASSERT_EQ(index.select(nth), expected[static_cast<std::size_t>(nth)]);
    for (int i = 0; i < rows; ++i)
      ASSERT_EQ(index.contains(i), on_side[static_cast<std::size_t>(i)]);
    EXPECT_FALSE(index.contains(100000));
    std::vector<std::int64_t> ranks;
    for (std::int64_t nth = index.size(); nth-- > 0;) ranks.push_back(nth);
    index.select(ranks);
    std::ranges::reverse(ranks);
    ASSERT_EQ(ranks, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Shares, SideIndexOf,
                         testing::Values(0.0, 0.001, 0.1, 0.5, 0.9, 1.0));

TEST(SideIndex, FindsSamplesBeyondLongGaps) {
  std::vector<bool> on_side(100000);
  on_side[5] = on_side[70000] = on_side[99999] = true;
  SideIndex index(on_side);
  EXPECT_EQ(index.select(0), 5);
  EXPECT_EQ(index.select(1), 70000);
  EXPECT_EQ(index.select(2), 99999);
  EXPECT_EQ(ids_of(index, {2, 0, 1, 1}),
            (std::vector<SampleId>{99999, 5, 70000, 70000}));
}

// The samples of sessions stand side by side, so blocks are full or empty.
TEST(SideIndex, FindsSamplesOfLongRuns) {
  std::vector<bool> on_side(300'000);
  std::vector<SampleId> expected;
  for (std::size_t i = 0; i < on_side.size(); ++i)
    if (i < 3 || (i > 90'000 && i / 30'000 % 2 == 0)) {
      on_side[i] = true;
      expected.push_back(static_cast<SampleId>(i));
    }
  SideIndex index(on_side);
  std::vector<std::int64_t> ranks(expected.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  EXPECT_EQ(ids_of(index, ranks), expected);
  for (std::int64_t nth : {0, 2, 3, 1000, 77'777})
    EXPECT_EQ(index.select(nth), expected[static_cast<std::size_t>(nth)]);
}

TEST(SideIndex, LeavesPaddingAsItIs) {
  SideIndex index(std::vector<bool>{false, true, false, true});
  EXPECT_EQ(ids_of(index, {-1, 1, -1, 0}),
            (std::vector<SampleId>{-1, 3, -1, 1}));
  EXPECT_EQ(ids_of(SideIndex(9), {-1, 8}), (std::vector<SampleId>{-1, 8}));
  SideIndex empty(std::vector<bool>(1000));
  EXPECT_EQ(ids_of(empty, {-1, -1}), (std::vector<SampleId>{-1, -1}));
  EXPECT_TRUE(ids_of(empty, {}).empty());
}

TEST(SideIndex, OfBothSidesCostsLessThanTwoBitsAndAHalfPerRow) {
  constexpr std::size_t kRows = 1 << 20;
  for (std::size_t every : {2u, 3u, 10u, 1000u, 100'000u}) {
    std::vector<bool> on_side(kRows), on_other(kRows);
    for (std::size_t i = 0; i < kRows; ++i)
      (i % every == 0 ? on_side : on_other)[i] = true;
    EXPECT_LE(8 * (SideIndex(on_side).memory() + SideIndex(on_other).memory()),
              kRows * 5 / 2)
        << every;
  }
}

TEST(SideIndex, RefusesSamplesThatItDoesNotHave) {
  SideIndex index(std::vector<bool>{true, false, true});
  EXPECT_THROW(index.select(2), Error);
  EXPECT_THROW(index.select(-1), Error);
  EXPECT_THROW(ids_of(index, {0, 2}), Error);
  EXPECT_THROW(ids_of(SideIndex(5), {5}), Error);
}

}  // namespace
}  // namespace penstock
