#include "penstock/sources/fake/fake_source.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "penstock/sources/test_reading.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

const std::vector<ColumnRequest> kAll = {{"value", ReadAs::number},
                                         {"group", ReadAs::value},
                                         {"items", ReadAs::json}};

TEST(CountingTable, HasRowsThatFollowFromTheirNumber) {
  FakeSource source(counting_table({.rows = 20}), kAll);
  ScannedBlock block = scan_all(source);
  ASSERT_EQ(block.rows, 20);
  EXPECT_EQ(block.keys.integer(12), 120);
  EXPECT_EQ(block.columns[0].float64(12), 12.0);
  EXPECT_EQ(block.columns[1].text(12), "group-1");
  EXPECT_EQ(block.columns[2].text(12),
            R"([{"a":12,"b":0},{"a":12,"b":1},{"a":12,"b":2}])");
}

TEST(CountingTable, ArrivesInAnotherOrderWhenScrambled) {
  for (std::int64_t rows : {1, 2, 7, 10, 1000}) {
    FakeSource source(counting_table({.rows = rows, .scrambled = true}), kAll);
    ScannedBlock block = scan_all(source);
    std::vector<std::int64_t> found, all;
    for (std::int64_t at = 0; at < rows; ++at) {
      found.push_back(block.keys.integer(at));
      all.push_back(10 * at);
    }
    EXPECT_THAT(found, testing::UnorderedElementsAreArray(all));
    if (rows > 2) {
      EXPECT_NE(found, all);
    }
  }
}

TEST(CountingTable, HoldsTheBadRowThatWasAskedFor) {
  FakeSource source(counting_table({.rows = 20, .bad_row = 4}), kAll);
  ScannedBlock block = scan_all(source);
  ASSERT_EQ(block.problems.size(), 1u);
  EXPECT_EQ(block.problems[0].row, 4);
  EXPECT_EQ(block.problems[0].column, 0u);
  EXPECT_EQ(block.problems[0].why,
            "holds text 'bad' where a float64 is expected");
}

TEST(CountingTable, HasKeysThatAscendInEveryType) {
  for (ColumnType type :
       {ColumnType::int64, ColumnType::text, ColumnType::uuid}) {
    FakeSource source(counting_table({.rows = 300, .key = type}), kAll);
    ScannedBlock block = scan_all(source);
    KeyList keys(type);
    for (std::int64_t at = 0; at < 300; ++at) {
      keys.append(block.keys, at);
      if (at > 0) {
        EXPECT_LT(keys.compare(at - 1, at), 0);
      }
    }
  }
}

TEST(FakeSource, CutsNoFinerThanItIsTold) {
  FakeSource source(counting_table({}), kAll, {.most_partitions = 3});
  EXPECT_EQ(source.partitions(8).size(), 3u);
  EXPECT_EQ(source.partitions(2).size(), 2u);
}

TEST(FakeSource, CountsWhatIsAskedOfIt) {
  FakeSource source(counting_table({.rows = 100}), kAll);
  {
    auto parts = source.partitions(1);
    auto reader = source.open_reader();
    EXPECT_EQ(source.counts().snapshots_open, 1);
    EXPECT_EQ(source.counts().readers_open, 1);
    reader->scan(parts[0], {.rows = 30}, [](KeyList&, Block&) { return true; });
    Block block;
    reader->read(integer_keys({0, 10, 0}), block);
  }
  EXPECT_EQ(source.counts().blocks, 4);
  EXPECT_EQ(source.counts().reads, 1);
  EXPECT_EQ(source.counts().rows, 103);
  EXPECT_EQ(source.counts().snapshots_open, 0);
  EXPECT_EQ(source.counts().readers_open, 0);
}

TEST(FakeSource, FailsAtTheReadItIsTold) {
  FakeSource source(counting_table({}), kAll, {.fail_at_read = 2});
  auto reader = source.open_reader();
  Block block;
  reader->read(integer_keys({0}), block);
  EXPECT_THROW(source.open_reader()->read(integer_keys({0}), block), Error);
  reader->read(integer_keys({0}), block);
}

TEST(FakeSource, FailsAtTheBlockItIsTold) {
  FakeSource source(counting_table({}), kAll, {.fail_at_block = 3});
  int blocks = 0;
  auto count = [&](KeyList&, Block&) { return ++blocks > 0; };
  auto parts = source.partitions(1);
  EXPECT_THROW(source.open_reader()->scan(parts[0], {.rows = 10}, count),
               Error);
  EXPECT_EQ(blocks, 2);
}

TEST(FakeSource, TakesItsTimeOnTheClockItIsGiven) {
  VirtualClock clock;
  FakeSource source(counting_table({.rows = 100}), kAll,
                    {.seconds_per_call = 0.5, .clock = &clock});
  auto reader = source.open_reader();
  Block block;
  reader->read(integer_keys({0}), block);
  reader->scan(source.partitions(1)[0], {.rows = 50},
               [](KeyList&, Block&) { return true; });
  EXPECT_DOUBLE_EQ(seconds(clock.now()), 1.5);
}

/// A clock that sees how many sleep on it at once.
class CrowdedClock : public VirtualClock {
 public:
  void sleep_until(Nanoseconds time) override {
    std::int64_t now_inside = ++inside_;
    for (std::int64_t seen = most_; seen < now_inside;)
      if (most_.compare_exchange_weak(seen, now_inside)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    VirtualClock::sleep_until(time);
    --inside_;
  }
  std::int64_t most() const { return most_; }

 private:
  // Counters for the assertion alone; nothing else is ordered by them.
  std::atomic<std::int64_t> inside_{0}, most_{0};
};

TEST(FakeSource, LetsOneReaderInAtATimeUnderTheGlobalLock) {
  CrowdedClock clock;
  FakeSource source(
      counting_table({.rows = 100}), kAll,
      {.global_lock = true, .seconds_per_call = 0.001, .clock = &clock});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Block block;
      auto reader = source.open_reader();
      for (int i = 0; i < 5; ++i) reader->read(integer_keys({0, 10}), block);
    });
  threads.clear();
  EXPECT_EQ(clock.most(), 1);
  EXPECT_EQ(source.counts().reads, 20);
}

TEST(FakeSource, ShowsChangesToTheNextReadAndPass) {
  FakeSource source(counting_table({.rows = 3}), kAll);
  source.change_row(1, {std::int64_t{10}, 7.5, std::string("g"), nullptr});
  source.remove_row(2);
  ScannedBlock block = scan_all(source);
  ASSERT_EQ(block.rows, 2);
  EXPECT_EQ(block.columns[0].float64(1), 7.5);
  EXPECT_FALSE(block.columns[2].valid(1));
  EXPECT_THROW(source.open_reader()->read(integer_keys({20}), block), Error);
  EXPECT_EQ(source.count().rows, 2);
}

TEST(FakeSource, HandsOutWhatIsHashedInItsDeclaredType) {
  FakeTable table = counting_table({.rows = 1});
  table.schema.columns[1].declared = "int64";
  FakeSource source(std::move(table), {{"value", ReadAs::value},
                                       {"group", ReadAs::value},
                                       {"id", ReadAs::integer},
                                       {"id", ReadAs::key}});
  EXPECT_THAT(source.types(),
              ElementsAre(ColumnType::int64, ColumnType::text,
                          ColumnType::int64, ColumnType::int64));
}

}  // namespace
}  // namespace penstock
