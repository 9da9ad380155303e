#include "penstock/sources/sqlite/test_database.h"
#include "tests/conformance/query_suite.h"

namespace penstock {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, QuerySuite, TestDatabase);

TEST(SqliteQuery, IsNoPragmaAndAttachesNothing) {
  TestDatabase database("CREATE TABLE t(x)");
  for (const char* sql :
       {"PRAGMA table_info(t)", "PRAGMA user_version = 7",
        "ATTACH 'other.sqlite' AS other", "VACUUM INTO 'copy.sqlite'"}) {
    Error error = error_of([&] { read_schema(database.query(sql)); });
    EXPECT_THAT(error.parts().code, testing::StartsWith("source.query")) << sql;
    EXPECT_EQ(error.kind(), ErrorKind::request) << sql;
  }
  EXPECT_EQ(database.ask("PRAGMA user_version"), "0");
}

TEST(SqliteQuery, KnowsWhatColumnsOfTablesDeclare) {
  TestDatabase database(
      "CREATE TABLE t(seen DATETIME, heard BOOLEAN, name TEXT)");
  Schema schema = read_schema(
      database.query("SELECT seen, heard, name, 1 + 1 AS n, name FROM t"));
  ASSERT_EQ(schema.columns.size(), 5u);
  EXPECT_TRUE(schema.columns[0].timestamp);
  EXPECT_TRUE(schema.columns[1].boolean);
  EXPECT_TRUE(schema.columns[2].text);
  EXPECT_EQ(schema.columns[3].declared, "");
  EXPECT_EQ(schema.columns[4].name, "name:1") << "SQLite tells them apart";
}

TEST(SqliteQuery, MayBeOrderedByARowNumberThatItDoesNotSelect) {
  TestDatabase database(
      "CREATE TABLE t(x REAL); INSERT INTO t VALUES (3), (1), (2)");
  auto first = [&](const std::string& query) {
    return scan_all(
               *open_source(database.query(query), {{"x", ReadAs::number}}))
        .columns.at(0)
        .number<double>(0);
  };
  EXPECT_EQ(first("SELECT x FROM t ORDER BY rowid"), 3);
  EXPECT_EQ(first("SELECT x FROM t ORDER BY ROWID DESC"), 2);
  EXPECT_EQ(first("SELECT x FROM t WHERE x < 3 ORDER BY oid LIMIT 1"), 1);
  Error error =
      error_of([&] { first("SELECT DISTINCT x FROM t ORDER BY rowid"); });
  EXPECT_EQ(error.parts().code, "source.query_order");
}

TEST(SqliteQuery, ThatFailsOnARowSaysWhereToLook) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, doc TEXT); INSERT INTO t VALUES "
      "(1, '{}'), (2, 'no json')");
  SourceSpec spec =
      database.query("SELECT id, json_extract(doc, '$.a') AS x FROM t");
  spec.key = {"id"};
  Error error = error_of([&] {
    scan_all(*open_source(spec, {{"x", ReadAs::number}}));
  });
  EXPECT_EQ(error.parts().code, "sqlite.failed");
  EXPECT_THAT(error.parts().next, testing::HasSubstr("source.query"));
}

TEST(SqliteQuery, ShowsOneMomentToAllOfAScan) {
  TestDatabase database(
      "PRAGMA journal_mode = WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, x); "
      "INSERT INTO t VALUES (1, 1), (2, 2)");
  SourceSpec spec = database.query("SELECT a.id, a.x FROM t a, t b");
  spec.key = {"id"};
  auto source = open_source(spec, {{"x", ReadAs::number}});
  auto partitions = source->partitions(4);
  EXPECT_EQ(partitions.size(), 1u);
  database.execute("UPDATE t SET x = 0");
  std::int64_t rows = 0;
  source->open_reader()->scan(partitions[0], {}, [&](KeyList&, Block& block) {
    rows += block.rows;
    for (std::int64_t row = 0; row < block.rows; ++row)
      EXPECT_GT(block.columns[0].as_float64(row), 0);
    return true;
  });
  EXPECT_EQ(rows, 4);
}

TEST(SqliteQuery, SaysWhenItsRowsHaveChanged) {
  TestDatabase database("CREATE TABLE t(id INTEGER PRIMARY KEY)");
  SourceSpec spec = database.query("SELECT id FROM t");
  spec.key = {"id"};
  const Json before = open_source(spec, {})->identity();
  EXPECT_FALSE(before.find("version")->is_null());
  database.execute("INSERT INTO t VALUES (1)");
  EXPECT_NE(open_source(spec, {})->identity(), before);
}

}  // namespace
}  // namespace penstock
