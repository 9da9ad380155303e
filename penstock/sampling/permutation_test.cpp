#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers all_of(std::int64_t n, std::uint64_t key) {
  Permutation permutation(n, key);
  Numbers values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(permutation(i));
  return values;
}

// Pearson's statistic against equal counts, in standard deviations above what
// chance gives. The keys are fixed, so a test that passes once always does.
double surprise(const std::vector<std::int64_t>& counts) {
  double total = 0;
  for (std::int64_t count : counts) total += static_cast<double>(count);
  double expected = total / static_cast<double>(counts.size());
  double chi2 = 0;
  for (std::int64_t count : counts) {
    double off = static_cast<double>(count) - expected;
    chi2 += off * off / expected;
  }
  double freedom = static_cast<double>(counts.size()) - 1;
  return (chi2 - freedom) / std::sqrt(2 * freedom);
}

std::size_t cell(std::int64_t i) { return static_cast<std::size_t>(i); }

class PermutationOf : public testing::TestWithParam<std::int64_t> {};

TEST_P(PermutationOf, HitsEveryElementOnce) {
  std::int64_t n = GetParam();
  for (std::uint64_t key : {0u, 1u, 77u}) {
    std::vector<bool> seen(cell(n));
    for (std::int64_t value : all_of(n, key)) {
      ASSERT_GE(value, 0);
      ASSERT_LT(value, n);
      ASSERT_FALSE(seen[cell(value)]) << value << " comes twice";
      seen[cell(value)] = true;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PermutationOf,
                         testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63,
                                         64, 65, 97, 255, 256, 257, 1000, 1009,
                                         4030, 4096, 4097, 65535, 65536, 65537,
                                         100003));

TEST(Permutation, ReachesEveryArrangementOfAFewEquallyOften) {
  for (std::int64_t n : {2, 3, 4, 5}) {
    std::map<Numbers, std::int64_t> seen;
    Numbers arrangement = all_of(n, 0);
    std::ranges::sort(arrangement);
    do seen[arrangement] = 0;
    while (std::ranges::next_permutation(arrangement).found);
    for (std::uint64_t key = 0; key < 60000; ++key) ++seen[all_of(n, key)];
    std::vector<std::int64_t> counts;
    for (const auto& [which, count] : seen) counts.push_back(count);
    EXPECT_LT(surprise(counts), 4) << n;
  }
}

TEST(Permutation, PutsEverySampleInEveryPlaceEquallyOften) {
  for (std::int64_t n : {7, 10, 16, 65, 100}) {
    std::vector<std::int64_t> counts(cell(n * n));
    for (std::uint64_t key = 0; key < 20000; ++key) {
      Numbers values = all_of(n, key);
      for (std::int64_t i = 0; i < n; ++i)
        ++counts[cell(i * n + values[cell(i)])];
    }
    EXPECT_LT(surprise(counts), 4) << n;
  }
}

TEST(Permutation, MakesEveryPairOfNeighboursEquallyOften) {
  for (std::int64_t n : {9, 33, 64, 65}) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> seen;
    for (std::uint64_t key = 0; key < 200000; ++key) {
      Permutation permutation(n, key);
      ++seen[{permutation(0), permutation(1)}];
    }
    ASSERT_EQ(std::ssize(seen), n * (n - 1));
    std::vector<std::int64_t> counts;
    for (const auto& [pair, count] : seen) counts.push_back(count);
    EXPECT_LT(surprise(counts), 4) << n;
  }
}

TEST(Permutation, TellsNothingOfASampleFromTheOneBefore) {
  constexpr std::int64_t kCells = 32;
  for (std::int64_t n : {std::int64_t{1} << 20, std::int64_t{1'000'000'000},
                         (std::int64_t{1} << 40) + 1}) {
    std::vector<std::int64_t> counts(cell(kCells * kCells));
    for (std::uint64_t key = 0; key < 100; ++key) {
      Permutation permutation(n, key);
      for (std::int64_t i = 0; i < 4000; ++i) {
        std::int64_t a = permutation(i) / (n / kCells + 1);
        std::int64_t b = permutation(i + 1) / (n / kCells + 1);
        ++counts[cell(a * kCells + b)];
      }
    }
    EXPECT_LT(surprise(counts), 4) << n;
  }
}

TEST(Permutation, HasNoFixedRelationToThatOfTheNextKey) {
  constexpr std::int64_t kSize = 101;
  std::vector<std::int64_t> differences(kSize);
  for (std::uint64_t key = 0; key < 4000; ++key) {
    Permutation one(kSize, key);
    Permutation other(kSize, key + 1);
    for (std::int64_t i = 0; i < kSize; ++i)
      ++differences[cell((other(i) - one(i) + kSize) % kSize)];
  }
  EXPECT_LT(surprise(differences), 4);
}

TEST(Permutation, WorksOnTheLargestSizes) {
  std::int64_t n = std::numeric_limits<std::int64_t>::max();
  Permutation permutation(n, 5);
  std::set<std::int64_t> seen;
  for (std::int64_t i = n - 1000; i < n; ++i) {
    std::int64_t value = permutation(i);
    EXPECT_TRUE(value >= 0 && value < n && seen.insert(value).second);
  }
}

Numbers in_one_go(const Permutation& permutation, std::int64_t first,
                  std::size_t count, Instructions use) {
  Numbers samples(count);
  permutation.range(first, samples, use);
  return samples;
}

Numbers one_by_one(const Permutation& permutation, std::int64_t first,
                   std::size_t count) {
  Numbers samples;
  for (std::int64_t i = 0; i < std::int64_t(count); ++i)
    samples.push_back(permutation(first + i));
  return samples;
}

class PermutationWith : public testing::TestWithParam<Instructions> {};

TEST_P(PermutationWith, ComputesManyPositionsAsItDoesEach) {
  for (std::int64_t n :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{5},
        std::int64_t{63}, std::int64_t{64}, std::int64_t{65},
        std::int64_t{1023}, std::int64_t{4097}, std::int64_t{65536},
        std::int64_t{65537}, std::int64_t{1'000'000},
        std::int64_t{1'000'000'000}, (std::int64_t{1} << 30) + 1,
        std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()})
    for (std::uint64_t key : {0u, 17u}) {
      Permutation permutation(n, key);
      for (std::size_t most : {1u, 7u, 8u, 9u, 1023u, 1024u, 1025u, 5000u}) {
        auto count = std::size_t(std::min<std::int64_t>(n, std::int64_t(most)));
        for (std::int64_t first :
             {std::int64_t{0}, (n - std::int64_t(count)) / 3,
              n - std::int64_t(count)})
          ASSERT_EQ(in_one_go(permutation, first, count, GetParam()),
                    one_by_one(permutation, first, count))
              << n << " from " << first;
      }
    }
}

TEST_P(PermutationWith, ComputesNoPositionAtAll) {
  EXPECT_TRUE(in_one_go(Permutation(5, 1), 5, 0, GetParam()).empty());
}

TEST_P(PermutationWith, RefusesPositionsThatItDoesNotHave) {
  Permutation permutation(100, 1);
  EXPECT_THROW(in_one_go(permutation, 99, 2, GetParam()), Error);
  EXPECT_THROW(in_one_go(permutation, -1, 2, GetParam()), Error);
}

INSTANTIATE_TEST_SUITE_P(Instructions, PermutationWith,
                         testing::ValuesIn(usable_instructions().begin(),
                                           usable_instructions().end()));

TEST(Permutation, AnyProcessorHasTheBaseline) {
  EXPECT_EQ(usable_instructions().front(), Instructions::baseline);
  EXPECT_EQ(usable_instructions().back(), best_instructions());
}

TEST(Permutation, OfNothingIsOurMistake) {
  EXPECT_THROW(Permutation(0, 1), Error);
}

}  // namespace
}  // namespace penstock
