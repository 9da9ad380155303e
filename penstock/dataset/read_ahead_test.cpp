#include "penstock/dataset/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

constexpr std::int64_t kRows = 100;

/// One I/O thread that can be held in its first read.
class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() {
    trouble_.reading = [this] {
      if (holds_.exchange(false)) {
        inside_.count_down();
        free_.wait();
      }
    };
  }

  ReadAhead& open() {
    store_ = counting_store(kRows, {{.column = "value"}}, trouble_);
    reads_ = std::make_unique<SourceReadAhead>(
        *store_, nullptr,
        ReadAhead::Options{.threads = 1, .meter = meter_, .arrived = [this] {
                             ++arrived_;
                             arrived_.notify_all();
                           }});
    return *reads_;
  }
  static Block rows_of(ItemRead& read) {
    Block block;
    read.take(block);
    return block;
  }
  void wait_for(int reads) {
    for (int now = arrived_; now < reads; now = arrived_) arrived_.wait(now);
  }

  std::atomic<bool> holds_ = false;
  std::latch inside_{1}, free_{1};
  std::atomic<int> arrived_ = 0;
  FakeStoreTrouble trouble_;
  StageMeter meter_{"read", 1};
  std::unique_ptr<FakeStore> store_;
  std::unique_ptr<ReadAhead> reads_;
};

TEST_F(ReadAheadTest, GivesTheSamplesOfAnItemInReadingOrder) {
  std::vector<SampleId> ids = {7, -1, 3, 7};
  std::shared_ptr<ItemRead> read = open().begin(ids);
  wait_for(1);
  ASSERT_TRUE(read->done());
  Block block = rows_of(*read);
  ASSERT_EQ(block.rows, 3);
  for (std::int64_t row : {0, 1, 2})
    EXPECT_EQ(block.columns[0].float64(row), row == 0 ? 3 : 7);
  EXPECT_EQ(meter_.numbers().items, 3);
  EXPECT_EQ(meter_.numbers().calls, 1);
}

TEST_F(ReadAheadTest, ReadsIntoTheMemoryOfRowsThatHaveBeenUsed) {
  UsedBlocks used;
  EXPECT_TRUE(used.take().columns.empty());
  Block block;
  block.columns.emplace_back().append_float64(1);
  const std::byte* memory = block.columns[0].values.data();
  used.give(std::move(block));
  Block again = used.take();
  EXPECT_EQ(again.rows, 0);
  again.columns[0].append_float64(2);
  EXPECT_EQ(again.columns[0].values.data(), memory);
  EXPECT_TRUE(used.take().columns.empty());
}

TEST_F(ReadAheadTest, ReadsNothingForPadding) {
  std::vector<SampleId> ids = {-1, -1};
  EXPECT_EQ(open().begin(ids), nullptr);
}

TEST_F(ReadAheadTest, LeavesOutWhatNobodyWaitsForAnyMore) {
  holds_ = true;
  std::vector<SampleId> ids = {1};
  std::shared_ptr<ItemRead> first = open().begin(ids);
  std::vector<std::shared_ptr<ItemRead>> dropped;
  for (int i = 0; i < 5; ++i) dropped.push_back(reads_->begin(ids));
  std::shared_ptr<ItemRead> last = reads_->begin(ids);
  inside_.wait();
  dropped.clear();
  free_.count_down();
  wait_for(2);
  EXPECT_TRUE(first->done());
  EXPECT_TRUE(last->done());
  EXPECT_EQ(store_->counts().reads, 2);
}

TEST_F(ReadAheadTest, EndsWithTheReadThatItIsAt) {
  holds_ = true;
  std::vector<SampleId> ids = {1};
  std::shared_ptr<ItemRead> first = open().begin(ids);
  reads_->begin(ids);
  inside_.wait();
  free_.count_down();
  reads_.reset();
  EXPECT_TRUE(first->done());
  EXPECT_EQ(store_->counts().readers_open, 0);
  EXPECT_EQ(store_->counts().reads, 1);
}

TEST_F(ReadAheadTest, GivesAnErrorToTheReadThatMetIt) {
  trouble_.fail_at_read = 2;
  std::vector<SampleId> ids = {1};
  std::vector<std::shared_ptr<ItemRead>> begun = {open().begin(ids)};
  for (int i = 0; i < 2; ++i) begun.push_back(reads_->begin(ids));
  wait_for(3);
  EXPECT_EQ(rows_of(*begun[0]).rows, 1);
  EXPECT_THROW(rows_of(*begun[1]), Error);
  EXPECT_EQ(rows_of(*begun[2]).rows, 1) << "by a reader of its own";
}

TEST_F(ReadAheadTest, AReaderThatCannotBeOpenedIsAnErrorOfTheRead) {
  int opened = 0;
  trouble_.opening = [&] {
    if (++opened == 1) throw std::runtime_error("no more connections");
  };
  std::vector<SampleId> ids = {1};
  std::shared_ptr<ItemRead> first = open().begin(ids);
  std::shared_ptr<ItemRead> second = reads_->begin(ids);
  wait_for(2);
  EXPECT_THROW(rows_of(*first), std::runtime_error);
  EXPECT_EQ(rows_of(*second).rows, 1);
}

}  // namespace
}  // namespace penstock
