#include <gmock/gmock.h>

#include "penstock/base/clock.h"
#include "penstock/sources/sqlite/test_database.h"
#include "tests/conformance/source_suite.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class SqliteFixture : public SourceFixture {
 public:
  void fill(ColumnType key, const std::vector<SuiteRow>& rows) override {
    key_ = key;
    std::string declared = key == ColumnType::int64 ? "INTEGER" : "TEXT";
    database_.execute("PRAGMA journal_mode = WAL; CREATE TABLE t(id " +
                      declared +
                      " PRIMARY KEY, number REAL, whole INTEGER, "
                      "doc TEXT); BEGIN");
    for (const SuiteRow& row : rows) add(row);
    database_.execute("COMMIT");
  }
  std::unique_ptr<Source> open(const std::vector<Wanted>& wanted) override {
    return open_source(database_.spec(), wanted);
  }
  void add(const SuiteRow& row) override {
    sqlite3_stmt* insert = nullptr;
    sqlite3_prepare_v2(database_.connection(), "INSERT INTO t VALUES (?,?,?,?)",
                       -1, &insert, nullptr);
    if (key_ == ColumnType::int64)
      sqlite3_bind_int64(insert, 1, row.id);
    else
      sqlite3_bind_text(insert, 1, row.key.data(),
                        static_cast<int>(row.key.size()), SQLITE_STATIC);
    if (row.number) sqlite3_bind_double(insert, 2, *row.number);
    if (row.whole) sqlite3_bind_int64(insert, 3, *row.whole);
    if (row.doc)
      sqlite3_bind_text(insert, 4, row.doc->data(),
                        static_cast<int>(row.doc->size()), SQLITE_STATIC);
    EXPECT_EQ(sqlite3_step(insert), SQLITE_DONE)
        << sqlite3_errmsg(database_.connection());
    sqlite3_finalize(insert);
  }

 private:
  TestDatabase database_;
  ColumnType key_ = ColumnType::int64;
};

std::unique_ptr<SourceFixture> make_sqlite() {
  return std::make_unique<SqliteFixture>();
}

INSTANTIATE_TEST_SUITE_P(
    Sqlite, SourceSuite,
    testing::Values(SourceCase{"int64", ColumnType::int64, make_sqlite},
                    SourceCase{"text", ColumnType::text, make_sqlite}),
    testing::PrintToStringParamName());

KeyList integers(std::int64_t from, std::int64_t to) {
  ColumnData column;
  column.type = ColumnType::int64;
  KeyList keys;
  for (std::int64_t key = from; key < to; ++key) {
    column.append_int64(key);
    keys.append(column, column.length - 1);
  }
  return keys;
}

KeyList texts(const std::vector<std::string>& all) {
  ColumnData column;
  column.type = ColumnType::text;
  KeyList keys(ColumnType::text);
  for (const std::string& key : all) {
    column.append_text(key);
    keys.append(column, column.length - 1);
  }
  return keys;
}

std::string rows_sql(std::int64_t rows) {
  return "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL);"
         "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE "
         "i + 1 < " +
         std::to_string(rows) + ") INSERT INTO t SELECT i, i * 0.5 FROM n;";
}

const std::vector<Wanted> kX = {{"x", ReadAs::number}};

TEST(SqliteReader, ReadsMoreKeysThanAStatementHasParameters) {
  TestDatabase database(rows_sql(70000));
  auto source = open_source(database.spec(), kX);
  Block block;
  source->open_reader()->read(integers(0, 70000), block);
  ASSERT_EQ(block.rows, 70000);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    ASSERT_EQ(block.columns[0].int64(row), row);
    ASSERT_EQ(block.columns[1].float64(row), 0.5 * static_cast<double>(row));
  }
}

TEST(SqliteReader, PaysOneRoundTripForAllKeysOfARead) {
  TestDatabase database(rows_sql(1000));
  SourceSpec spec = database.spec();
  spec.round_trip_ms = 40;
  auto source = open_source(spec, kX);
  auto reader = source->open_reader();
  Block block;
  Nanoseconds start = wall_clock().now();
  reader->read(integers(0, 500), block);
  double once = seconds(wall_clock().now() - start);
  EXPECT_GE(once, 0.040);
  EXPECT_LT(once, 20 * 0.040);  // 500 of them would take 20 s
  for (int i = 0; i < 3; ++i) reader->read(integers(i, i + 1), block);
  EXPECT_GE(seconds(wall_clock().now() - start), 0.160);
}

TEST(SqliteReader, PaysOneRoundTripForAWholeScan) {
  TestDatabase database(rows_sql(1000));
  SourceSpec spec = database.spec();
  spec.round_trip_ms = 40;
  auto source = open_source(spec, kX);
  auto parts = source->partitions(1);
  auto reader = source->open_reader();
  Nanoseconds start = wall_clock().now();
  reader->scan(parts[0], 10, [](Block&) { return true; });
  double once = seconds(wall_clock().now() - start);
  EXPECT_GE(once, 0.040);
  EXPECT_LT(once, 20 * 0.040);  // 100 blocks
}

TEST(SqliteReader, SeesRowsThatWereChangedBetweenReads) {
  TestDatabase database(rows_sql(10));
  auto source = open_source(database.spec(), kX);
  auto reader = source->open_reader();
  Block block;
  reader->read(integers(3, 4), block);
  database.execute("UPDATE t SET x = -1 WHERE id = 3");
  reader->read(integers(3, 4), block);
  EXPECT_EQ(block.columns[1].float64(0), -1.0);
}

TEST(SqliteReader, HoldsNoLockBetweenReads) {
  TestDatabase database(rows_sql(10));
  auto source = open_source(database.spec(), kX);
  auto reader = source->open_reader();
  Block block;
  reader->read(integers(0, 10), block);
  EXPECT_EQ(database.try_execute("BEGIN EXCLUSIVE; COMMIT"), SQLITE_OK);
}

TEST(SqliteReader, EndsItsTransactionWithTheLastPartition) {
  TestDatabase database(rows_sql(10));
  auto source = open_source(database.spec(), kX);
  auto parts = source->partitions(1);
  EXPECT_EQ(database.try_execute("UPDATE t SET x = 0"), SQLITE_BUSY);
  parts.clear();
  EXPECT_EQ(database.try_execute("UPDATE t SET x = 0"), SQLITE_OK);
}

TEST(SqliteReader, CountsARowThatWhereLeavesOutAsGone) {
  TestDatabase database(rows_sql(10));
  SourceSpec spec = database.spec();
  spec.where = "x < 2 -- metres";
  auto source = open_source(spec, kX);
  auto reader = source->open_reader();
  Block block;
  reader->read(integers(0, 4), block);
  EXPECT_EQ(block.rows, 4);
  Error error = error_of([&] { reader->read(integers(3, 6), block); });
  EXPECT_EQ(error.parts().code, "source.row_gone");
  EXPECT_THAT(error.what(), HasSubstr("key 4"));
}

TEST(SqliteReader, TellsKeysApartThatTheColumnDoesNot) {
  TestDatabase database(
      "CREATE TABLE t(id TEXT COLLATE NOCASE, x REAL); INSERT INTO t VALUES "
      "('a', 1), ('A', 2), ('b', 3);");
  SourceSpec spec = database.spec();
  spec.key = "id";
  Block block;
  open_source(spec, kX)->open_reader()->read(texts({"b", "A"}), block);
  ASSERT_EQ(block.rows, 2);
  EXPECT_EQ(block.columns[1].float64(0), 3.0);
  EXPECT_EQ(block.columns[1].float64(1), 2.0);
}

TEST(SqliteReader, ReadsTextKeysWithAZeroByteOrNothing) {
  TestDatabase database(
      "CREATE TABLE t(id TEXT PRIMARY KEY, x REAL); INSERT INTO t VALUES "
      "('a' || char(0) || 'b', 1), ('a', 2), ('', 3);");
  Block block;
  open_source(database.spec(), kX)
      ->open_reader()
      ->read(texts({"", std::string("a\0b", 3), "a"}), block);
  EXPECT_EQ(block.columns[1].float64(0), 3.0);
  EXPECT_EQ(block.columns[1].float64(1), 1.0);
  EXPECT_EQ(block.columns[1].float64(2), 2.0);
}

TEST(SqliteReader, RefusesAKeyThatTwoRowsHave) {
  TestDatabase database(
      "CREATE TABLE t(id INT, x REAL); INSERT INTO t VALUES (7, 1), (7, 2)");
  SourceSpec spec = database.spec();
  spec.key = "id";
  auto source = open_source(spec, kX);
  Block block;
  Error error =
      error_of([&] { source->open_reader()->read(integers(7, 8), block); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "source.key_twice");
  EXPECT_THAT(error.what(), HasSubstr("key 7"));
}

TEST(SqliteReader, NamesTheTableThatWentAway) {
  TestDatabase database(rows_sql(10));
  auto source = open_source(database.spec(), kX);
  database.execute("DROP TABLE t");
  Block block;
  Error error =
      error_of([&] { source->open_reader()->read(integers(0, 1), block); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.failed");
  EXPECT_THAT(error.what(), HasSubstr("no such table: t"));
  EXPECT_THAT(error.parts().next, HasSubstr(".schema"));
}

TEST(SqliteReader, LetsTwoScansOfOnePassTakeTurns) {
  TestDatabase database(rows_sql(5000));
  auto source = open_source(database.spec(), kX);
  auto parts = source->partitions(1);
  std::vector<std::int64_t> rows(2);
  {
    std::vector<std::jthread> threads;
    for (std::int64_t& count : rows)
      threads.emplace_back([&] {
        source->open_reader()->scan(parts[0], 100, [&](Block& block) {
          count += block.rows;
          return true;
        });
      });
  }
  EXPECT_THAT(rows, testing::Each(5000));
}

}  // namespace
}  // namespace penstock
