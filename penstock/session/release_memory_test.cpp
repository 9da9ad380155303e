#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/session/host_copy.h"
#include "penstock/session/open_loader.h"

// Rows leave the device in the middle of an epoch, and nobody who looks at the
// batches can tell.

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const Batch& batch, Session& loader) {
  HostCopy copy(batch, loader.stream());
  return {copy.bytes().begin(), copy.bytes().end()};
}

/// Of the next batches.
std::vector<Bytes> take(Session& loader, int batches) {
  std::vector<Bytes> taken;
  for (int i = 0; i < batches; ++i) {
    std::optional<Batch> batch = loader.next();
    if (!batch) break;
    taken.push_back(bytes_of(*batch, loader));
  }
  return taken;
}

class ReleaseMemory : public testing::TestWithParam<int> {
 protected:
  static constexpr int kAll = 30;  // two epochs
  std::unique_ptr<Session> open(const std::string& cache = "auto") {
    return open_loader(
        positions_.job({"loader.cache=" + cache, "train.epochs=2",
                        "loader.workers=" + std::to_string(GetParam())}));
  }
  std::size_t row_bytes(Session& loader) {
    return layout_of(loader.opened()->facts().fitted->fields).row_bytes;
  }
  PositionsRun positions_;
};

TEST_P(ReleaseMemory, OrderAndBytesStayAsTheyWereInMidEpoch) {
  const std::vector<Bytes> whole = take(*open(), kAll);
  ASSERT_EQ(std::ssize(whole), kAll);
  for (int before : {0, 1, 7, 15, 29})
    for (std::size_t bytes : {std::size_t{1}, std::size_t{20000}, SIZE_MAX}) {
      auto loader = open();
      ASSERT_EQ(loader->rows().plan().tier, Tier::device);
      std::vector<Bytes> taken = take(*loader, before);
      const std::size_t free = loader->device().memory().free;
      const std::size_t freed = loader->release_memory(bytes);
      EXPECT_GE(freed, bytes == SIZE_MAX ? 1 : bytes);
      EXPECT_GE(loader->device().memory().free, free + freed);
      EXPECT_EQ(loader->rows().plan().mixed(), bytes != SIZE_MAX);
      std::ranges::move(take(*loader, kAll), std::back_inserter(taken));
      EXPECT_EQ(taken, whole) << before << ", " << bytes;
    }
}

TEST_P(ReleaseMemory, CanBeAskedForAgainUntilNothingIsLeft) {
  const std::vector<Bytes> whole = take(*open(), kAll);
  auto loader = open();
  std::vector<Bytes> taken;
  for (int i = 0; i < kAll; ++i) {
    loader->release_memory(10 * row_bytes(*loader));
    std::ranges::move(take(*loader, 1), std::back_inserter(taken));
  }
  EXPECT_EQ(taken, whole);
  while (loader->release_memory(SIZE_MAX) > 0) {
  }
  EXPECT_EQ(loader->rows().plan().tier, Tier::ram);
  EXPECT_EQ(loader->release_memory(1), 0u);
}

TEST_P(ReleaseMemory, ABatchThatWasTakenKeepsItsBytesAndNoRows) {
  auto loader = open();
  std::optional<Batch> batch = loader->next();
  const Bytes before = bytes_of(*batch, *loader);
  const std::size_t free = loader->device().memory().free;
  const std::size_t freed = loader->release_memory(SIZE_MAX);
  EXPECT_GT(freed, 0u);
  EXPECT_GT(loader->device().memory().free, free);
  EXPECT_EQ(bytes_of(*batch, *loader), before);
}

TEST_P(ReleaseMemory, OfRowsThatAreInSeveralPlaces) {
  const std::vector<Bytes> whole = take(*open(), kAll);
  const std::size_t row = row_bytes(*open());
  const auto gib = [&](std::size_t rows) {
    return Json(static_cast<double>(rows * row + 1) / (1 << 30)).dump();
  };
  for (const std::string& cache :
       {R"({"device_gib": )" + gib(300) + R"(, "pinned_gib": )" + gib(100) +
            R"(, "ram_gib": )" + gib(100) + R"(, "disk_gib": 0})",
        R"({"device_gib": )" + gib(300) + R"(, "pinned_gib": )" + gib(100) +
            R"(, "ram_gib": )" + gib(100) + R"(, "dir": ")" +
            positions_.path("stores") + R"("})"})
    for (std::size_t rows : {std::size_t{100}, std::size_t{600}}) {
      auto loader = open(cache);
      ASSERT_TRUE(loader->rows().plan().mixed()) << cache;
      std::vector<Bytes> taken = take(*loader, 4);
      EXPECT_GE(loader->release_memory(rows * row),
                std::min<std::size_t>(rows, 300) * row);
      std::ranges::move(take(*loader, kAll), std::back_inserter(taken));
      EXPECT_EQ(taken, whole) << cache << ", " << rows;
      EXPECT_NE(loader->rows().plan().text().find("holds"), std::string::npos);
    }
}

TEST_P(ReleaseMemory, OfRowsThatAreMapped) {
  auto twice = [](const std::unique_ptr<Session>& loader) {
    std::vector<TensorSpec> like;
    for (const Output& output : loader->rows().outputs())
      like.push_back({.name = output.name,
                      .dtype = output.dtype,
                      .row_shape = output.row_shape});
    RowFunction function{.layout = layout_of_tensors(std::move(like)),
                         .fingerprint = "as it is",
                         .call = [](const RowCall& call) {
                           for (std::size_t t = 0; t < call.out.size(); ++t)
                             std::copy_n(call.in[t].data, call.in[t].bytes(),
                                         call.out[t].data);
                         }};
    loader->map(function);
    loader->map(function);
  };
  auto mapped = open();
  twice(mapped);
  const std::vector<Bytes> whole = take(*mapped, kAll);
  auto loader = open();
  twice(loader);
  std::vector<Bytes> taken = take(*loader, 5);
  EXPECT_GT(loader->release_memory(SIZE_MAX), 0u);
  std::ranges::move(take(*loader, kAll), std::back_inserter(taken));
  EXPECT_EQ(taken, whole);
}

TEST_P(ReleaseMemory, BatchesAheadAreDroppedInMidEpoch) {
  const std::vector<Bytes> whole = take(*open(), kAll);
  auto loader = open("ram");
  std::vector<Bytes> taken = take(*loader, 5);
  const std::size_t before = loader->device().memory().free;
  const std::size_t freed = loader->drop_look_ahead();
  if (loader->loader().threads()) {
    EXPECT_EQ(loader->loader().threads()->prefetch, 1);
  }
  EXPECT_EQ(freed > 0, GetParam() > 0);  // without workers none is ahead
  EXPECT_GE(loader->device().memory().free, before + freed);
  std::ranges::move(take(*loader, kAll), std::back_inserter(taken));
  EXPECT_EQ(taken, whole);
  EXPECT_EQ(loader->drop_look_ahead(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Workers, ReleaseMemory, testing::Values(0, 1, 2, 8));

TEST(ReleaseMemoryOnTheHost, IsNoneOfTheDevices) {
  PositionsRun positions;
  auto loader = open_loader(positions.job({"device=cpu"}));
  EXPECT_EQ(loader->release_memory(SIZE_MAX), 0u);
}

}  // namespace
}  // namespace penstock
