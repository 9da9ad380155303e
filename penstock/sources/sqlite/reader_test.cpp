#include <gmock/gmock.h>

#include "penstock/sources/sqlite/test_database.h"
#include "tests/conformance/database_suite.h"
#include "tests/conformance/source_abilities_suite.h"

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
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& wanted) override {
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

INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, DatabaseSuite, TestDatabase);

std::string rows_sql(std::int64_t rows) {
  return "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL);"
         "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE "
         "i + 1 < " +
         std::to_string(rows) + ") INSERT INTO t SELECT i, i * 0.5 FROM n;";
}

const std::vector<ColumnRequest> kX = {{"x", ReadAs::number}};

TEST(SqliteReader, HoldsNoLockBetweenReads) {
  TestDatabase database(rows_sql(10));
  auto source = open_source(database.spec(), kX);
  auto reader = source->open_reader();
  Block block;
  reader->read(integer_keys(0, 10), block);
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

TEST(SqliteReader, TellsKeysApartThatTheColumnDoesNot) {
  TestDatabase database(
      "CREATE TABLE t(id TEXT COLLATE NOCASE, x REAL); INSERT INTO t VALUES "
      "('a', 1), ('A', 2), ('b', 3);");
  SourceSpec spec = database.spec();
  spec.key = {"id"};
  Block block;
  open_source(spec, kX)->open_reader()->read(text_keys({"b", "A"}), block);
  ASSERT_EQ(block.rows, 2);
  EXPECT_EQ(block.columns[0].float64(0), 3.0);
  EXPECT_EQ(block.columns[0].float64(1), 2.0);
}

TEST(SqliteReader, ReadsTextKeysWithAZeroByteOrNothing) {
  TestDatabase database(
      "CREATE TABLE t(id TEXT PRIMARY KEY, x REAL); INSERT INTO t VALUES "
      "('a' || char(0) || 'b', 1), ('a', 2), ('', 3);");
  Block block;
  open_source(database.spec(), kX)
      ->open_reader()
      ->read(text_keys({"", std::string("a\0b", 3), "a"}), block);
  EXPECT_EQ(block.columns[0].float64(0), 3.0);
  EXPECT_EQ(block.columns[0].float64(1), 1.0);
  EXPECT_EQ(block.columns[0].float64(2), 2.0);
}

TEST(SqliteReader, NamesTheTableThatWentAway) {
  TestDatabase database(rows_sql(10));
  auto source = open_source(database.spec(), kX);
  database.execute("DROP TABLE t");
  Block block;
  Error error =
      error_of([&] { source->open_reader()->read(integer_keys(0, 1), block); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "source.table_changed");
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
        source->open_reader()->scan(parts[0], {.rows = 100},
                                    [&](KeyList&, Block& block) {
                                      count += block.rows;
                                      return true;
                                    });
      });
  }
  EXPECT_THAT(rows, testing::Each(5000));
}

}  // namespace
}  // namespace penstock
