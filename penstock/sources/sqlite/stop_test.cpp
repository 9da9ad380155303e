#include "penstock/sources/sqlite/test_database.h"
#include "penstock/sources/test_stopping.h"

namespace penstock {
namespace {

/// A thousand million rows are looked at, and three of them kept.
constexpr const char* kSilentView =
    "CREATE VIEW v AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + "
    "1 FROM n WHERE id < 1000000000) SELECT id, id * 1.0 AS x FROM n WHERE id "
    "% 400000000 = 1";

constexpr const char* kTable =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL); INSERT INTO t WITH "
    "RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < "
    "200) SELECT id, id FROM n";

std::unique_ptr<Source> opened(const SourceSpec& spec, StopFlag stop) {
  return open_source(spec, {{"x", ReadAs::number}}, {stop});
}

TEST(SqliteStop, EndsAStatementThatIsSilent) {
  TestDatabase base(kSilentView);
  SourceSpec spec = base.spec("v");
  spec.key = {"id"};
  SoonStopped soon;
  std::unique_ptr<Source> source = opened(spec, soon.flag());
  soon.begin();
  EXPECT_TRUE(stops_within(10, [&] { scan_all(*source); }));
}

TEST(SqliteStop, EndsAScanBetweenTwoBlocks) {
  TestDatabase base(kTable);
  std::atomic<bool> stop{false};
  std::unique_ptr<Source> source = opened(base.spec(), &stop);
  int blocks = 0;
  EXPECT_TRUE(stops_within(10, [&] {
    source->open_reader()->scan(source->partitions(1)[0], {.rows = 50},
                                [&](KeyList&, Block&) {
                                  stop = ++blocks == 2;
                                  return true;
                                });
  }));
  EXPECT_EQ(blocks, 2);
}

TEST(SqliteStop, EndsBeforeTheNextStatement) {
  TestDatabase base(kTable);
  std::atomic<bool> stop{false};
  std::unique_ptr<Source> source = opened(base.spec(), &stop);
  std::unique_ptr<Reader> reader = source->open_reader();
  Block block;
  reader->read(integer_keys({3}), block);
  EXPECT_EQ(block.rows, 1);
  stop = true;
  EXPECT_TRUE(
      stops_within(10, [&] { reader->read(integer_keys({3}), block); }));
  EXPECT_TRUE(stops_within(10, [&] { source->partitions(1); }));
  EXPECT_TRUE(stops_within(10, [&] { (void)source->count(); }));
}

TEST(SqliteStop, EndsTheOpening) {
  TestDatabase base(kTable);
  std::atomic<bool> stop{true};
  EXPECT_TRUE(stops_within(10, [&] { opened(base.spec(), &stop); }));
}

TEST(SqliteStop, IsToldRatherThanTheLockThatWasWaitedForMeanwhile) {
  TestDatabase base(kTable);
  base.execute("BEGIN EXCLUSIVE");
  SoonStopped soon;
  soon.begin();
  EXPECT_TRUE(stops_within(10, [&] { opened(base.spec(), soon.flag()); }));
}

}  // namespace
}  // namespace penstock
