#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "penstock/base/file.h"
#include "penstock/sources/sqlite/test_database.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTable =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, band TEXT, x REAL); INSERT INTO t "
    "VALUES (1, 'uhf', 1.0), (2, 'vhf', 2.0), (3, 'uhf', 3.0);";

std::int64_t rows_where(TestDatabase& database, const std::string& where) {
  SourceSpec spec = database.spec();
  spec.where = where;
  return scan_all(*open_source(spec, {{"x", ReadAs::number}})).rows;
}

TEST(SqliteWhere, NamesAnUnknownColumn) {
  TestDatabase database(kTable);
  for (const char* where : {"bandd = 'uhf'", "\"bandd\" = 'uhf'"}) {
    Error error = error_of([&] { rows_where(database, where); });
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_THAT(error.what(), HasSubstr("no such column: bandd"));
    EXPECT_EQ(error.parts().next, "did you mean 'band'?");
  }
}

TEST(SqliteWhere, IsAdvisedWithTheColumnsOfThatTable) {
  TestDatabase database(kTable);
  for (const char* where : {"x >", "altitude > 3"})
    EXPECT_EQ(error_of([&] { rows_where(database, where); }).parts().next,
              "write an SQL condition over its columns: id, band, x");
}

TEST(SqliteSource, NeedsNoKeyToBeScanned) {
  TestDatabase database(
      "CREATE TABLE t(x REAL, y TEXT); INSERT INTO t VALUES (1.5, NULL), "
      "(2.5, 'b')");
  SourceSpec spec = database.spec();
  auto source = open_source(spec, {{"x", ReadAs::value}}, {.keys = false});
  EXPECT_FALSE(source->abilities().by_key);
  ScannedBlock block = scan_all(*source);
  ASSERT_EQ(block.rows, 2);
  EXPECT_EQ(block.keys.size(), 0);
  EXPECT_EQ(block.columns[0].float64(1), 2.5);
}

TEST(SqliteWhere, IsOneConditionWithoutParameters) {
  TestDatabase database(kTable);
  for (const char* where : {"1); DELETE FROM t WHERE (1", "x > ?", "x > :y"}) {
    Error error = error_of([&] { rows_where(database, where); });
    EXPECT_EQ(error.parts().code, "source.where") << where;
  }
  EXPECT_EQ(rows_where(database, ""), 3);
}

TEST(SqliteWhere, ThatFailsOnARowIsNamed) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, js TEXT, x REAL); INSERT INTO t "
      "VALUES (1, '[1]', 1), (2, '{x', 2)");
  Error error =
      error_of([&] { rows_where(database, "json_extract(js, '$[0]') > 0"); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.failed");
  EXPECT_THAT(error.parts().why, HasSubstr("malformed JSON"));
  EXPECT_THAT(error.parts().next, HasSubstr("check source.where"));
}

TEST(SqliteSource, CannotWrite) {
  TestDatabase database(kTable);
  auto source = open_source(database.spec(), {});
  std::string before = real_files().read(database.path());
  scan_all(*source);
  EXPECT_EQ(real_files().read(database.path()), before);
}

TEST(SqliteSource, HasOnePartition) {
  TestDatabase database(kTable);
  auto source = open_source(database.spec(), {});
  EXPECT_EQ(source->partitions(8).size(), 1u);
  EXPECT_EQ(source->partitions(1)[0].range, "all rows");
}

/// How often this process has the file open.
std::int64_t times_open(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::directory_iterator open("/proc/self/fd");
  return std::ranges::count_if(open, [&](const fs::directory_entry& file) {
    std::error_code closed;  // the folder's own
    return fs::read_symlink(file.path(), closed) == path;
  });
}

TEST(SqliteSource, OpensItsFileOnceToDescribeCountAndScan) {
  TestDatabase database(kTable);
  database.disconnect();
  auto source = open_source(database.spec(), {{"x", ReadAs::number}});
  EXPECT_EQ(source->count().rows, 3);
  EXPECT_EQ(times_open(database.path()), 1);
  auto parts = source->partitions(1);
  EXPECT_EQ(times_open(database.path()), 1);
  EXPECT_EQ(source->count().rows, 3) << "while it is scanned";
  parts.clear();
  EXPECT_EQ(times_open(database.path()), 0);
  EXPECT_EQ(scan_all(*source).rows, 3);
}

TEST(SqliteSource, DoesNotKeepAWriteAheadLogFromBeingRemoved) {
  TestDatabase database(std::string("PRAGMA journal_mode = WAL; ") + kTable);
  database.disconnect();
  auto source = open_source(database.spec(), {{"x", ReadAs::number}});
  EXPECT_EQ(source->count().rows, 3);
  EXPECT_EQ(times_open(database.path()), 0);
  EXPECT_EQ(scan_all(*source).rows, 3);
}

TEST(SqliteSource, EstimatesTheRowsOfALargeFile) {
  TestDatabase database(
      "PRAGMA synchronous = OFF; CREATE TABLE t(id INTEGER PRIMARY KEY, x); "
      "CREATE TABLE far(id INTEGER PRIMARY KEY); INSERT INTO far VALUES (0), "
      "(1000000000000); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + "
      "1 FROM n WHERE i < 1000) INSERT INTO t SELECT i + 500, zeroblob(20000) "
      "FROM n; DELETE FROM t WHERE id = 600; CREATE VIEW v AS SELECT * FROM t");
  EXPECT_EQ(open_source(database.spec(), {})->count().rows, 1000);
  EXPECT_EQ(open_source(database.spec("far"), {})->count().rows, std::nullopt);
  SourceSpec some = database.spec();
  some.where = "id > 700";
  EXPECT_EQ(open_source(some, {})->count().rows, std::nullopt);
  SourceSpec view = database.spec("v");
  view.key = {"id"};
  EXPECT_EQ(open_source(view, {})->count().rows, std::nullopt);
}

TEST(SqliteSource, CountsASmallFileAndEstimatesOthers) {
  const std::string rows =
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x); WITH RECURSIVE n(i) AS "
      "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO t "
      "SELECT i, zeroblob(";
  TestDatabase small(rows + "10) FROM n; DELETE FROM t WHERE id = 60");
  RowCount count = open_source(small.spec(), {})->count();
  EXPECT_EQ(count.rows, 99);
  EXPECT_TRUE(count.exact);
  TestDatabase larger(
      rows +
      "10000) FROM n; DELETE FROM t WHERE id = 60; CREATE TABLE far(id INTEGER "
      "PRIMARY KEY); INSERT INTO far VALUES (0), (1000000000000)");
  count = open_source(larger.spec(), {})->count();
  EXPECT_EQ(count.rows, 100);
  EXPECT_FALSE(count.exact);
  EXPECT_EQ(open_source(larger.spec("far"), {})->count().rows, 2);
  SourceSpec some = larger.spec();
  some.where = "id > 70";
  EXPECT_EQ(open_source(some, {})->count().rows, 30);
}

class GoldenRows : public testing::Test {
 protected:
  SourceSpec spec() const {
    return parse_source_spec("sqlite:" PENSTOCK_TEST_DATA
                             "/j1/golden.sqlite#measurements",
                             "source");
  }
  const Json& rows_of(const char* job) {
    if (golden_.is_null())
      golden_ = Json::parse(
          real_files().read(PENSTOCK_TEST_DATA "/j1/golden.json"), "golden");
    return *golden_.find(job)->find("rows");
  }
  Json golden_;
};

TEST_F(GoldenRows, HaveTheSchemaOfMeasurements) {
  Schema schema = read_schema(spec());
  std::vector<std::string> names;
  for (const ColumnInfo& column : schema.columns) names.push_back(column.name);
  EXPECT_THAT(names,
              testing::ElementsAre("id", "name", "recorded_at", "seen_at",
                                   "session", "receivers", "tx_lat", "tx_lon"));
  EXPECT_THAT(schema.find("tx_lat")->declared, testing::StrCaseEq("real"));
  EXPECT_TRUE(schema.find("id")->primary_key);
}

TEST_F(GoldenRows, AreAllRead) {
  auto source = open_source(spec(), {{"receivers", ReadAs::json},
                                     {"tx_lat", ReadAs::number},
                                     {"session", ReadAs::value}});
  Block block = scan_all(*source);
  EXPECT_EQ(block.rows, 43);
  EXPECT_TRUE(block.problems.empty());
  EXPECT_EQ(source->count().rows, 43);
}

TEST_F(GoldenRows, HaveTheTimesThatAreWritten) {
  auto source = open_source(spec(), {{"recorded_at", ReadAs::number},
                                     {"seen_at", ReadAs::number},
                                     {"tx_lat", ReadAs::number}});
  std::vector<std::int64_t> keys;
  const Json& rows = rows_of("strongest_3_plain");
  for (const Json& row : rows.array())
    keys.push_back(row.find("key")->integer());
  Block block;
  source->open_reader()->read(integer_keys(keys), block);
  ASSERT_EQ(block.rows, 42);
  for (std::int64_t at = 0; at < block.rows; ++at) {
    const Json& row = rows.array()[static_cast<std::size_t>(at)];
    const Json::Array& when = row.find("when")->array();
    EXPECT_EQ(block.columns[0].float64(at), when[0].number());
    EXPECT_EQ(block.columns[1].float64(at), when[1].number());
    EXPECT_FLOAT_EQ(
        static_cast<float>(block.columns[2].float64(at)),
        static_cast<float>(row.find("target")->array()[0].number()));
  }
}

TEST_F(GoldenRows, HaveTextKeysToo) {
  SourceSpec by_name = spec();
  by_name.key = {"name"};
  ScannedBlock block = scan_all(*open_source(by_name, {}));
  EXPECT_EQ(block.keys.type(), ColumnType::text);
  EXPECT_EQ(block.keys.bytes(0), "b36");
}

TEST(SqliteIdentity, NamesTheTableAndTheVersionOfItsFile) {
  TestDatabase database("CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL)");
  SourceSpec spec = database.spec();
  spec.where = "x > 0";
  auto identity = [&] {
    return open_source(spec, {{"x", ReadAs::number}})->identity();
  };
  Json first = identity();
  EXPECT_EQ(*first.find("kind"), Json("sqlite"));
  EXPECT_EQ(*first.find("table"), Json("t"));
  EXPECT_EQ(*first.find("key"), Json("id"));
  EXPECT_EQ(*first.find("where"), Json("x > 0"));
  EXPECT_EQ(*first.find("columns"), Json(Json::Array{"x"}));
  EXPECT_EQ(identity(), first);
  database.execute(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT "
      "2000) INSERT INTO t SELECT i, i FROM n");
  EXPECT_NE(*identity().find("version"), *first.find("version"));
}

TEST(SqliteSources, AreReadOneAfterTheOther) {
  TestDatabase a(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL); INSERT INTO t VALUES "
      "(1, 1.5), (4, 4.5)");
  TestDatabase b(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL); INSERT INTO t VALUES "
      "(2, 2.5)");
  auto source =
      open_concatenated({a.spec(), b.spec()}, {{"x", ReadAs::number}});
  EXPECT_EQ(source->count().rows, 3);
  Block block;
  open_checked_reader(*source)->read(integer_keys({2, 4, 1, 2}), block);
  for (std::int64_t row = 0; row < 4; ++row)
    EXPECT_EQ(block.columns[0].float64(row),
              std::vector({2.5, 4.5, 1.5, 2.5})[static_cast<std::size_t>(row)]);
  Error error = error_of([&] {
    open_checked_reader(*source)->read(integer_keys({2, 3}), block);
  });
  EXPECT_EQ(error.parts().code, "source.row_gone");
  EXPECT_THAT(error.what(), HasSubstr("key 3"));
}

TEST(SqliteSources, AreJoinedByTheirKeys) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL); INSERT INTO t VALUES "
      "(1, 1.5), (2, 2.5), (3, 3.5); CREATE TABLE labels(x REAL, t_id INTEGER "
      "PRIMARY KEY, label INTEGER); INSERT INTO labels VALUES (0, 3, 30), "
      "(0, 1, 10)");
  auto source = open_joined(database.spec("t"), database.spec("labels"),
                            {{"label", ReadAs::integer},
                             {"x", ReadAs::number},
                             {"t_id", ReadAs::integer}});
  ScannedBlock all = scan_all(*source);
  ASSERT_EQ(all.rows, 3);
  EXPECT_EQ(all.columns[0].int64(0), 10);
  EXPECT_EQ(all.columns[1].float64(0), 1.5) << "the left one has it";
  EXPECT_EQ(all.columns[2].int64(2), 3);
  ASSERT_EQ(all.problems.size(), 1u);
  EXPECT_EQ(all.problems[0].row, 1);
  EXPECT_EQ(all.problems[0].column, 0u);
  EXPECT_THAT(all.problems[0].why, HasSubstr("no row with key 2 in labels"));
  EXPECT_EQ(error_of([&] {
              open_joined(database.spec("t"), database.spec("labels"),
                          {{"lable", ReadAs::integer}});
            })
                .parts()
                .code,
            "source.unknown_column");
}

}  // namespace
}  // namespace penstock
