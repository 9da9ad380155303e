#include "penstock/sources/fake/fake_store.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "penstock/sources/test_reading.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

const std::vector<ColumnRequest> kAll = {{"value"}, {"samples"}, {"packed"}};

TEST(FakeStore, HasRowsThatFollowFromTheirPosition) {
  auto store = counting_store(20, kAll);
  ScannedBlock rows = scan_all(*store);
  ASSERT_GT(rows.rows, 0);
  std::vector<std::int64_t> asked = {13, 0};
  Block block;
  store->open_reader()->read(asked, block);
  ASSERT_EQ(block.rows, 2);
  EXPECT_EQ(block.columns[0].float64(0), 13.0);
  EXPECT_EQ(block.columns[1].offset(1) - block.columns[1].offset(0), 4);
  EXPECT_EQ(block.columns[1].children[0].number<float>(3), 16.0f);
  EXPECT_EQ(block.columns[2].text(0), "xxxxxx");
  EXPECT_EQ(block.columns[2].text(1), "");
}

TEST(FakeStore, ReadsAChunkOnceForAllItsRows) {
  auto store = counting_store(100, kAll, {.chunk_rows = 10});
  std::vector<std::int64_t> asked = {35, 1, 31, 9, 39, 5};
  auto reader = store->open_reader();
  Block block;
  reader->read(asked, block);
  EXPECT_EQ(store->counts().chunk_reads, 2);
  asked = {32};
  reader->read(asked, block);
  EXPECT_EQ(store->counts().chunk_reads, 2) << "it is the last one";
}

TEST(FakeStore, IsCutWhereItsChunksAre) {
  auto store = counting_store(100, kAll, {.chunk_rows = 30});
  std::vector<std::int64_t> ends;
  for (const Partition& part : store->partitions(4)) ends.push_back(part.end);
  EXPECT_THAT(ends, ElementsAre(30, 60, 90, 100));
}

TEST(FakeStore, FailsForASecondReaderInsideItsLock) {
  auto store = counting_store(
      64, kAll, {.global_lock = true, .spoil = [](Block&) {
                   std::this_thread::sleep_for(std::chrono::milliseconds(20));
                 }});
  auto fails = [&](auto open) {
    std::atomic<int> failed{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
          auto reader = open();
          std::vector<std::int64_t> asked = {1, 2};
          Block block;
          try {
            reader->read(asked, block);
          } catch (const Error&) {
            ++failed;
          }
        });
    }
    return failed.load();
  };
  EXPECT_GT(fails([&] { return store->open_reader(); }), 0);
  EXPECT_EQ(fails([&] { return open_checked_reader(*store); }), 0);
}

}  // namespace
}  // namespace penstock
