#include "penstock/session/batch_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "penstock/base/random.h"

namespace penstock {
namespace {

/// A device and a model on it: what so many rows take, and how fast they are.
struct SimulatedDevice {
  double limit = 0, fixed = 0, row = 0;
  double scratch = 0;    ///< from two rows on
  double workspace = 0;  ///< from `workspace_from` rows on
  std::int64_t workspace_from = 0;
  double block = 0;      ///< what is allocated at once
  double half_rate = 0;  ///< rows with half of the greatest rate

  double peak(std::int64_t rows) const {
    double bytes = fixed + row * static_cast<double>(rows);
    if (rows >= 2) bytes += scratch;
    if (rows >= workspace_from) bytes += workspace;
    return std::ceil(bytes / block) * block;
  }
  double rate(std::int64_t rows) const {
    const auto n = static_cast<double>(rows);
    return 1000 * n / (n + half_rate);
  }
  /// The largest batch that leaves the headroom.
  std::int64_t most(std::int64_t below) const {
    const double room = limit - 0.08 * (limit - fixed);
    std::int64_t good = 0, bad = below + 1;
    while (bad - good > 1) {
      const std::int64_t middle = (good + bad) / 2;
      (peak(middle) <= room ? good : bad) = middle;
    }
    return good;
  }
  /// The smallest batch of which twice the rows give less than 5 % more.
  std::int64_t knee(std::int64_t below) const {
    std::int64_t rows = 1;
    while (rows < below && rate(2 * rows) >= 1.05 * rate(rows)) ++rows;
    return rows;
  }
};

SimulatedDevice drawn(std::uint64_t number) {
  Random random(7, number, 0, 0);
  auto between = [&](double low, double high) {
    return low * std::pow(high / low, random.uniform());
  };
  SimulatedDevice device{.limit = between(1e8, 1e11)};
  device.fixed = device.limit * between(0.01, 0.8);
  device.row = (device.limit - device.fixed) / between(2, 20000);
  device.scratch = device.row * between(0.01, 4);
  device.workspace_from = 1 + static_cast<std::int64_t>(between(2, 4000));
  device.workspace = 0.05 * (device.limit - device.fixed) * random.uniform();
  device.block = between(512, 2 << 20);
  device.half_rate = between(0.1, 1000);
  return device;
}

TEST(BatchSearch, ComesNearTheLargestBatchThatIsWorthItOf300Devices) {
  constexpr std::int64_t kMost = 65536;
  double shortages = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    SCOPED_TRACE(number);
    const SimulatedDevice device = drawn(number);
    const FoundBatch found = search_batch(
        {.most = kMost,
         .limit_bytes = static_cast<std::int64_t>(device.limit),
         .fixed_bytes = static_cast<std::int64_t>(device.fixed)},
        [&](std::int64_t rows) {
          const double peak = device.peak(rows);
          const bool fits = peak <= device.limit;
          shortages += fits ? 0 : 1;
          return TriedBatch{.rows = rows,
                            .fits = fits,
                            .peak_bytes = static_cast<std::int64_t>(peak),
                            .rows_per_s = device.rate(rows)};
        });
    const std::int64_t best = std::min(device.most(kMost), device.knee(kMost));
    EXPECT_GE(static_cast<double>(found.rows), 0.9 * static_cast<double>(best));
    EXPECT_LE(found.rows, device.most(kMost));
    if (found.rows > 0) {
      EXPECT_TRUE(std::ranges::any_of(found.tried, [&](const auto& one) {
        return one.rows == found.rows && one.fits;
      }));
    }
  }
  EXPECT_LE(shortages / 300, 0.1);
}

TriedBatch fitting(std::int64_t rows) {
  return {.rows = rows,
          .fits = true,
          .peak_bytes = 10 * rows,
          .rows_per_s = static_cast<double>(rows)};
}

TEST(BatchSearch, TakesNoMoreRowsThanAreWanted) {
  const FoundBatch found =
      search_batch({.most = 100, .limit_bytes = 1 << 30}, fitting);
  EXPECT_EQ(found.rows, 100);
  EXPECT_EQ(found.by, FoundBatch::By::most);
  EXPECT_EQ(search_batch({.most = 1, .limit_bytes = 1 << 30}, fitting).rows, 1);
}

TEST(BatchSearch, FindsNothingWhereOneRowIsTooMany) {
  const FoundBatch found =
      search_batch({.most = 100, .limit_bytes = 5}, fitting);
  EXPECT_EQ(found.rows, 0);
  EXPECT_EQ(found.tried.size(), 2u);
}

TEST(BatchSearch, EndsWhereMoreRowsAreNotFaster) {
  const FoundBatch found = search_batch(
      {.most = 4096, .limit_bytes = 1 << 30}, [](std::int64_t rows) {
        TriedBatch batch = fitting(rows);
        batch.rows_per_s =
            static_cast<double>(std::min<std::int64_t>(64, rows));
        return batch;
      });
  EXPECT_EQ(found.rows, 64);
  EXPECT_EQ(found.by, FoundBatch::By::rate);
}

}  // namespace
}  // namespace penstock
