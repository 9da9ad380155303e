#include "penstock/run/stoppable.h"

#include <gtest/gtest.h>

#include "penstock/run/positions_run.h"

namespace penstock {
namespace {

/// The source of the demo's rows, stoppable.
std::unique_ptr<Source> source_of(const PositionsRun& positions,
                                  const std::atomic<bool>* stop) {
  SourceSpec spec = positions.job().source;
  return stoppable(open_source(spec, {{"tx_lat", ReadAs::number}}), stop);
}

std::int64_t scanned(Source& source, const std::function<void()>& each) {
  std::int64_t rows = 0;
  for (const Partition& partition : source.partitions(1))
    source.open_reader()->scan(partition, 50, [&](Block& block) {
      rows += block.rows;
      each();
      return true;
    });
  return rows;
}

TEST(Stoppable, IsTheSameSourceUntilItIsStopped) {
  PositionsRun positions(200);
  std::atomic<bool> stop{false};
  std::unique_ptr<Source> plain = source_of(positions, nullptr);
  std::unique_ptr<Source> source = source_of(positions, &stop);
  EXPECT_EQ(source->shown(), plain->shown());
  EXPECT_EQ(source->types(), plain->types());
  EXPECT_EQ(source->estimated_rows(), plain->estimated_rows());
  EXPECT_EQ(source->schema().columns.size(), plain->schema().columns.size());
  EXPECT_EQ(scanned(*source, [] {}), 200);
}

TEST(Stoppable, EndsAScanBetweenTwoBlocks) {
  PositionsRun positions(200);
  std::atomic<bool> stop{false};
  std::unique_ptr<Source> source = source_of(positions, &stop);
  int blocks = 0;
  try {
    scanned(*source, [&] { stop = ++blocks == 2; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(is_stop(error.in_stage("read")));
  }
  EXPECT_EQ(blocks, 2);
}

TEST(Stoppable, EndsBeforeTheNextStatement) {
  PositionsRun positions(20);
  std::atomic<bool> stop{false};
  std::unique_ptr<Source> source = source_of(positions, &stop);
  KeyList keys;
  ColumnData three{.type = ColumnType::int64};
  three.append_int64(3);
  keys.append(three, 0);
  Block block;
  std::unique_ptr<Reader> reader = source->open_reader();
  reader->read(keys, block);
  EXPECT_EQ(block.rows, 1);
  stop = true;
  EXPECT_THROW(reader->read(keys, block), Error);
}

TEST(Stoppable, KnowsItsOwnErrorFromAllOthers) {
  EXPECT_FALSE(is_stop(Error(ErrorKind::request, {.code = "other"})));
  EXPECT_NO_THROW(end_if_stopped(nullptr));
}

}  // namespace
}  // namespace penstock
