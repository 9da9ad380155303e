#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "penstock/sources/sqlite/test_database.h"

namespace penstock {
namespace {

const std::vector<ColumnRequest> kX = {{"x", ReadAs::number}};

/// Rows 1..n of 20 KB each: 2000 of them are worth five parts.
std::string large_table(int rows, const std::string& column = "id INTEGER") {
  return "PRAGMA journal_mode = WAL; CREATE TABLE t(" + column +
         " PRIMARY KEY, x REAL, filling BLOB); WITH RECURSIVE n(i) AS (SELECT "
         "1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
         std::to_string(rows) +
         ") INSERT INTO t SELECT i, 0.5 * i, zeroblob(20000) FROM n";
}

struct Seen {
  std::vector<std::int64_t> keys;
  double sum = 0;
};

void scan(Source& source, const Partition& part, Seen& seen) {
  source.open_reader()->scan(
      part, {.rows = 100}, [&](KeyList& keys, Block& block) {
        for (std::int64_t row = 0; row < block.rows; ++row) {
          seen.keys.push_back(keys.integer(row));
          seen.sum += block.columns[0].float64(row);
        }
        return true;
      });
}

Seen scan(Source& source, const std::vector<Partition>& parts) {
  Seen seen;
  for (const Partition& part : parts) scan(source, part, seen);
  return seen;
}

std::vector<std::int64_t> from_one_to(std::int64_t last) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(last));
  std::iota(keys.begin(), keys.end(), 1);
  return keys;
}

TEST(SqliteParts, OfALargeFileHoldEveryRowOnce) {
  TestDatabase database(large_table(2000));
  auto source = open_source(database.spec(), kX);
  for (int readers : {1, 2, 8}) {
    auto parts = source->partitions(readers);
    EXPECT_EQ(parts.size(), readers == 1 ? 1u : 4u) << readers;
    EXPECT_EQ(scan(*source, parts).keys, from_one_to(2000)) << readers;
  }
  EXPECT_EQ(source->partitions(2)[1].range, "rows 501..1000");
}

TEST(SqliteParts, AreReadSideBySide) {
  TestDatabase database(large_table(2000));
  auto source = open_source(database.spec(), kX);
  auto parts = source->partitions(2);
  std::vector<Seen> seen(parts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < parts.size(); ++i)
      threads.emplace_back([&, i] { scan(*source, parts[i], seen[i]); });
  }
  double sum = 0;
  for (const Seen& of_part : seen) {
    EXPECT_EQ(of_part.keys.size(), 500u);
    sum += of_part.sum;
  }
  EXPECT_EQ(sum, 0.5 * 2000 * 2001 / 2);
}

TEST(SqliteParts, ShowOneMomentAlthoughSomebodyWritesLater) {
  TestDatabase database(large_table(2000));
  auto source = open_source(database.spec(), kX);
  auto parts = source->partitions(2);
  ASSERT_GT(parts.size(), 1u);
  database.execute("UPDATE t SET x = 0; DELETE FROM t WHERE id > 1000");
  Seen seen = scan(*source, parts);
  EXPECT_EQ(seen.keys.size(), 2000u);
  EXPECT_EQ(seen.sum, 0.5 * 2000 * 2001 / 2);
}

// Each transaction moves 1 from the first row to the last. Parts that showed
// different moments would give another sum.
TEST(SqliteParts, ShowOneMomentWhileSomebodyWritesAllTheTime) {
  TestDatabase database(large_table(2000));
  SourceSpec spec = database.spec();
  spec.round_trip_ms = 0.2;  // time enough to write between two transactions
  auto source = open_source(spec, kX);
  std::atomic<bool> enough{false};
  database.execute("PRAGMA busy_timeout = 2000");
  std::jthread writer([&] {
    while (!enough.load())
      database.try_execute(
          "BEGIN; UPDATE t SET x = x - 1 WHERE id = 1; UPDATE t SET x = x + 1 "
          "WHERE id = 2000; COMMIT");
  });
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(scan(*source, source->partitions(2)).sum, 0.5 * 2000 * 2001 / 2);
  enough = true;
}

TEST(SqliteParts, EndTheirTransactionsWithTheLastOfThem) {
  TestDatabase database(large_table(2000));
  database.execute("PRAGMA journal_mode = DELETE");
  auto source = open_source(database.spec(), kX);
  auto parts = source->partitions(2);
  EXPECT_EQ(database.try_execute("UPDATE t SET x = 0"), SQLITE_BUSY);
  parts.clear();
  EXPECT_EQ(database.try_execute("UPDATE t SET x = 0"), SQLITE_OK);
}

TEST(SqliteParts, FollowTheCondition) {
  TestDatabase database(large_table(2000));
  SourceSpec spec = database.spec();
  spec.where = "x > 300 OR id = 7 -- all far ones";
  auto source = open_source(spec, kX);
  std::vector<std::int64_t> keys = scan(*source, source->partitions(2)).keys;
  EXPECT_EQ(keys.size(), 1401u);
  EXPECT_EQ(std::ranges::count(keys, 7), 1);
}

TEST(SqliteParts, ReachFromTheLowestRowNumberToTheHighest) {
  TestDatabase database(large_table(2000));
  database.execute(
      "UPDATE t SET id = -9223372036854775807 - 1 WHERE id = 1; "
      "UPDATE t SET id = 9223372036854775807 WHERE id = 2");
  auto source = open_source(database.spec(), kX);
  auto parts = source->partitions(2);
  EXPECT_EQ(parts.size(), 4u);
  EXPECT_EQ(scan(*source, parts).keys.size(), 2000u);
}

TEST(SqliteParts, OfATableWhoseNameOrColumnsAreOddAreTheSame) {
  TestDatabase database(large_table(2000));
  database.execute(
      "ALTER TABLE t RENAME TO \"a \"\"b\"; ALTER TABLE \"a \"\"b\" ADD COLUMN "
      "rowid TEXT");
  auto source = open_source(database.spec("a \"b"), kX);
  auto parts = source->partitions(2);
  EXPECT_EQ(parts.size(), 4u);
  EXPECT_EQ(scan(*source, parts).keys, from_one_to(2000));
}

TEST(SqliteParts, AreOneWithoutRowNumbers) {
  std::string sql = large_table(2000);
  sql.insert(sql.find("; WITH"), " WITHOUT ROWID");
  TestDatabase database(sql);
  auto source = open_source(database.spec(), kX);
  auto parts = source->partitions(2);
  EXPECT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].range, "all rows");
  EXPECT_EQ(scan(*source, parts).keys, from_one_to(2000));
}

TEST(SqliteParts, OfAnEmptyTableHoldNothing) {
  TestDatabase database(large_table(2000));
  database.execute("DELETE FROM t");
  auto source = open_source(database.spec(), kX);
  EXPECT_TRUE(scan(*source, source->partitions(2)).keys.empty());
}

}  // namespace
}  // namespace penstock
