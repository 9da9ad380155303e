#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/hash.h"
#include "penstock/base/key.h"
#include "penstock/sampling/sampling.h"

// Saved positions and splits mean something only as long as the same numbers
// come out. These digests were written down before the order was computed many
// positions at a time: one position after the other, in plain C++.

namespace penstock {
namespace {

using Numbers = std::vector<std::int64_t>;

std::string digest_of(const Numbers& numbers) {
  std::uint64_t hash = hash64(std::as_bytes(std::span(numbers)));
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4)
    text += "0123456789abcdef"[(hash >> shift) & 15];
  return text;
}

/// All positions, or the first, the last and some between.
Numbers looked_at(std::int64_t n) {
  constexpr std::int64_t kEdge = 2048;
  Numbers positions;
  for (std::int64_t i = 0; i < std::min(n, kEdge); ++i) positions.push_back(i);
  if (n > 3 * kEdge)
    for (std::int64_t i = 1; i < 512; ++i) positions.push_back(n / 512 * i);
  for (std::int64_t i = std::max(kEdge, n - kEdge); i < n; ++i)
    positions.push_back(i);
  return positions;
}

struct Golden {
  std::int64_t samples;
  const char* digest;
};

constexpr std::int64_t kOne = 1;
const Golden kOrders[] = {
    {1, "eb1af3ad3ad6a20f"},
    {2, "23444afafe3c39f7"},
    {3, "5962e928ce119e43"},
    {5, "79339eab94647554"},
    {63, "b95a335cc5b81bcb"},
    {64, "4f5ad9704e26ecc4"},
    {65, "4f15b7c37ca1ca4c"},
    {127, "19e3e617f3f7d4ce"},
    {128, "7643100dab07af33"},
    {129, "34045a9cc4fd52df"},
    {1023, "076c278fa50ce22f"},
    {1024, "0f6573666fcee080"},
    {1025, "d18761e7069fb7d3"},
    {65535, "2fc1f75f2847c94d"},
    {65536, "74821bda7d148531"},
    {65537, "9330a28d2b76a794"},
    {1'000'000, "2fed3a4e5240f468"},
    {(kOne << 20) - 1, "8a7480f6f7d3671d"},
    {kOne << 20, "763c3a89f6a76ed8"},
    {(kOne << 20) + 1, "a1af5a8c2d1839db"},
    {1'000'000'000, "8f3bf96e549d2828"},
    {(kOne << 30) - 1, "f4d83fcd24650b4a"},
    {kOne << 30, "b3f764f2b01ee8cb"},
    {(kOne << 30) + 1, "fbccc5832848bbc2"},
    {(kOne << 32) + 1, "7778265fcf83e8b8"},
    {(kOne << 40) - 1, "5cf0c813387de106"},
    {kOne << 40, "58c1d80637d58317"},
    {(kOne << 40) + 1, "aa0a2c3097775aac"},
    {(kOne << 62) + 1, "a560651cfe4ae6d4"},
};

TEST(OrderDigest, OfEverySizeSeedAndEpochIsTheOneOfBefore) {
  for (const Golden& golden : kOrders) {
    Numbers samples;
    for (std::uint64_t seed : {0u, 1u, 17u})
      for (std::int64_t epoch : {0, 1, 1000}) {
        Order order{.samples = golden.samples, .seed = seed};
        for (std::int64_t position : looked_at(golden.samples))
          samples.push_back(sample_at(order, epoch, position));
      }
    EXPECT_EQ(digest_of(samples), golden.digest) << golden.samples;
  }
}

struct GoldenPlans {
  std::int64_t batch_size;
  Tail tail;
  bool shuffle;
  const char* digest;
};

const GoldenPlans kPlans[] = {
    {1, Tail::drop, true, "0267e7de5ec8c249"},
    {7, Tail::drop, true, "5e52477ab0d713c8"},
    {7, Tail::pad, true, "cb19321d1f7a1011"},
    {7, Tail::exact, true, "5a7669b802644173"},
    {64, Tail::drop, true, "6a4ec5c57de4fa5d"},
    {64, Tail::pad, true, "b648ba66aabeb0fd"},
    {64, Tail::exact, true, "233ed48289f4eff2"},
    {64, Tail::pad, false, "a34af91c3a7ac06f"},
    {1000, Tail::pad, true, "39d1266b78336ed5"},
    {1000, Tail::exact, false, "bced3b92cf9dfd2b"},
    {4096, Tail::pad, true, "4482c24a23158862"},
    {4096, Tail::exact, true, "c211975496f6ab8e"},
};

TEST(OrderDigest, OfEveryPlanIsTheOneOfBefore) {
  Plan plan;
  for (const GoldenPlans& golden : kPlans) {
    Numbers seen;
    for (int world : {1, 3}) {
      Order order{.samples = 4030,
                  .seed = 17,
                  .shuffle = golden.shuffle,
                  .batch_size = golden.batch_size,
                  .tail = golden.tail};
      for (std::int64_t epoch : {0, 3})
        for (std::int64_t step = 0; step < steps_per_epoch(order); ++step)
          for (int rank = 0; rank < world; ++rank) {
            plan_step(order, {rank, world}, {epoch, step}, plan);
            for (const SampleRange& range : plan.ranges) {
              seen.push_back(range.sample);
              EXPECT_EQ(range.end, SampleRange::kToItsEnd);
              seen.push_back(range.begin);
              seen.push_back(1);  // as a whole sample ended before
            }
            seen.insert(seen.end(), plan.bin_ends.begin(), plan.bin_ends.end());
          }
    }
    EXPECT_EQ(digest_of(seen), golden.digest)
        << golden.batch_size << " " << static_cast<int>(golden.tail);
  }
}

/// The sides of integer keys 0..rows-1.
std::vector<bool> side_of_integers(const Split& split, Side side,
                                   std::int64_t rows) {
  std::vector<bool> on_side;
  for (std::int64_t key = 0; key < rows; ++key) {
    auto bytes = std::bit_cast<std::array<char, 8>>(key);
    on_side.push_back(side_of(split, {bytes.data(), 8}) == side);
  }
  return on_side;
}

struct GoldenSides {
  double train;
  double val;
  const char* train_digest;
  const char* val_digest;
};

const GoldenSides kSides[] = {
    {0.9, 0.1, "ef50bd8d4acbc60c", "b95d3cb38c9a4dd9"},
    {0.5, 0.3, "166cf4503b450d03", "d000f6ccfd4f62c7"},
    {0.001, 0.999, "82725e8fbf1d8074", "67016b4b0c104ece"},
};

TEST(OrderDigest, OfASplitIsTheOneOfBefore) {
  constexpr std::int64_t kRows = 100'003;
  for (const GoldenSides& golden : kSides) {
    Split split{.train = golden.train, .val = golden.val, .seed = 17};
    for (Side side : {Side::train, Side::val}) {
      SideIndex index(side_of_integers(split, side, kRows));
      Numbers ids;
      for (std::int64_t nth = 0; nth < index.size(); ++nth)
        ids.push_back(index.select(nth));
      Numbers together(ids.size());
      std::iota(together.begin(), together.end(), 0);
      index.select(together);
      EXPECT_EQ(together, ids);
      EXPECT_EQ(digest_of(ids),
                side == Side::train ? golden.train_digest : golden.val_digest)
          << golden.train;
    }
  }
}

}  // namespace
}  // namespace penstock
