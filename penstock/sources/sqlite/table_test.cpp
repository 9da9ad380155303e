#include <gmock/gmock.h>

#include "penstock/sources/sqlite/test_database.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> keys_of(const Schema& schema) {
  std::vector<std::string> keys;
  for (const ColumnInfo& column : schema.columns)
    if (column.primary_key) keys.push_back(column.name);
  return keys;
}

TEST(SqliteTable, HasItsColumnsInOrder) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, \"it's\" TEXT, \"a\"\"b\" REAL, "
      "g AS (id + 1))");
  Schema schema = read_schema(database.spec());
  ASSERT_EQ(schema.columns.size(), 4u);
  EXPECT_EQ(schema.columns[0].declared, "INTEGER");
  EXPECT_EQ(schema.columns[1].name, "it's");
  EXPECT_EQ(schema.columns[2].name, "a\"b");
  EXPECT_EQ(schema.columns[3].name, "g");
}

TEST(SqliteTable, KnowsBooleansAndTimestampsByTheirDeclaration) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a BOOL, b boolean NOT NULL, c "
      "DATE, d DATETIME, e timestamp with time zone, f TEXT, g REAL)");
  Schema schema = read_schema(database.spec());
  for (const ColumnInfo& column : schema.columns) {
    EXPECT_EQ(column.boolean, column.name == "a" || column.name == "b");
    EXPECT_EQ(column.timestamp, column.name >= "c" && column.name <= "e")
        << column.name;
  }
}

TEST(SqliteTable, CallsTextTextHoweverItIsRead) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b VARCHAR, c TIMETEXT, d "
      "REAL, e)");
  for (ReadAs as : {ReadAs::number, ReadAs::value}) {
    Schema schema = open_source(database.spec(), {{"a", as}})->schema();
    for (const ColumnInfo& column : schema.columns) {
      EXPECT_EQ(column.text, column.name == "a" || column.name == "b");
      EXPECT_EQ(column.timestamp, column.name == "c") << column.name;
    }
  }
}

TEST(SqliteTable, HasTheKeyThatIsDeclared) {
  TestDatabase database(
      "CREATE TABLE t(a TEXT PRIMARY KEY, b); CREATE TABLE two(a, b, PRIMARY "
      "KEY (a, b)); CREATE TABLE none(a);");
  EXPECT_THAT(keys_of(read_schema(database.spec())), testing::ElementsAre("a"));
  EXPECT_THAT(keys_of(read_schema(database.spec("two"))), testing::IsEmpty());
  EXPECT_THAT(keys_of(read_schema(database.spec("none"))), testing::IsEmpty());
}

TEST(SqliteTable, MayBeLeftOpenWhenItIsTheOnlyOne) {
  TestDatabase database(
      "CREATE TABLE only(id INTEGER PRIMARY KEY); CREATE VIEW v AS SELECT 1");
  auto source = open_source(database.spec(""), {});
  EXPECT_EQ(source->shown(), "only in " + database.path());
}

TEST(SqliteTable, MustBeNamedWhenThereAreMore) {
  TestDatabase database("CREATE TABLE one(a); CREATE TABLE two(a)");
  Error error = error_of([&] { read_schema(database.spec("")); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.unknown_table");
  EXPECT_THAT(error.what(), HasSubstr("source.table: one, two"));
}

TEST(SqliteTable, ThatIsUnknownNamesTheNearest) {
  TestDatabase database(
      "CREATE TABLE measurements(a); CREATE VIEW positions AS SELECT 1");
  Error error = error_of([&] { read_schema(database.spec("measurement")); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.unknown_table");
  EXPECT_THAT(error.what(), HasSubstr("did you mean 'measurements'?"));
  EXPECT_THAT(error_of([&] { read_schema(database.spec("position")); }).what(),
              HasSubstr("did you mean 'positions'?"));
}

TEST(SqliteTable, NamesTheNearestColumn) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, receivers TEXT)");
  Error error = error_of([&] {
    open_source(database.spec(), {{.column = "recievers",
                                   .as = ReadAs::json,
                                   .setting = "fields.r.json_set.column"}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.unknown_column");
  EXPECT_EQ(error.parts().where, "fields.r.json_set.column");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("t in " + database.path()),
                                  HasSubstr("did you mean 'receivers'?")));
}

TEST(SqliteTable, NamesTheNearestColumnForTheKey) {
  TestDatabase database("CREATE TABLE t(id INTEGER PRIMARY KEY)");
  SourceSpec spec = database.spec();
  spec.key = {"idd"};
  Error error = error_of([&] { open_source(spec, {}); });
  EXPECT_EQ(error.parts().code, "source.unknown_column");
  EXPECT_EQ(error.parts().where, "source.key");
  EXPECT_THAT(error.what(), HasSubstr("did you mean 'id'?"));
}

TEST(SqliteTable, WithoutAPrimaryKeyIsNumberedByRowid) {
  TestDatabase database(
      "CREATE TABLE t(x REAL); INSERT INTO t(rowid, x) VALUES (7, 1.5), (-3, "
      "2.5); CREATE TABLE taken(rowid TEXT, x REAL); INSERT INTO taken VALUES "
      "('a', 1)");
  ScannedBlock rows =
      scan_all(*open_source(database.spec(), {{"x", ReadAs::number}}));
  EXPECT_EQ(rows.keys.integer(0), -3);
  EXPECT_EQ(rows.columns[0].float64(0), 2.5);
  EXPECT_EQ(rows.keys.integer(1), 7);
  auto taken = open_source(database.spec("taken"), {});
  EXPECT_EQ(scan_all(*taken).keys.integer(0), 1);
  EXPECT_EQ(*taken->identity().find("key"), Json("_rowid_"));
}

TEST(SqliteTable, LetsItsRowidBeNamedAsTheKey) {
  TestDatabase database(
      "CREATE TABLE t(a TEXT PRIMARY KEY); INSERT INTO t VALUES (NULL), "
      "('b'); CREATE TABLE w(a TEXT PRIMARY KEY) WITHOUT ROWID");
  SourceSpec spec = database.spec();
  EXPECT_EQ(error_of([&] { scan_all(*open_source(spec, {})); }).parts().code,
            "source.bad_key");
  spec.key = {"ROWID"};
  EXPECT_EQ(scan_all(*open_source(spec, {})).keys.integer(1), 2);
  spec = database.spec("w");
  spec.key = {"rowid"};
  EXPECT_EQ(error_of([&] { open_source(spec, {}); }).parts().code,
            "source.unknown_column");
}

TEST(SqliteTable, HasTheColumnsOfItsKeyInTheOrderOfTheKey) {
  TestDatabase database(
      "CREATE TABLE t(b TEXT, x, a INTEGER, PRIMARY KEY (a, b)) WITHOUT "
      "ROWID; INSERT INTO t VALUES ('n', 1, 5)");
  EXPECT_THAT(read_schema(database.spec()).primary_key,
              testing::ElementsAre("a", "b"));
  auto source = open_source(
      database.spec(),
      {{"a", ReadAs::integer}, {"x", ReadAs::integer}, {"b", ReadAs::value}});
  ScannedBlock rows = scan_all(*source);
  EXPECT_EQ(rows.keys.bytes(0), "A5\tn");
  EXPECT_EQ(rows.columns[0].int64(0), 5);
  EXPECT_EQ(rows.columns[2].text(0), "n");
}

TEST(SqliteTable, MayBeAViewWhoseKeyIsNamed) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL); INSERT INTO t VALUES "
      "(1, 2.0), (2, 3.0); CREATE VIEW v AS SELECT id AS n, 2 * x AS y FROM t");
  SourceSpec spec = database.spec("v");
  EXPECT_EQ(error_of([&] { open_source(spec, {}); }).parts().code,
            "source.no_key");
  spec.key = {"n"};
  Block rows = scan_all(*open_source(spec, {{"y", ReadAs::number}}));
  ASSERT_EQ(rows.rows, 2);
  EXPECT_EQ(rows.columns[0].float64(1), 6.0);
}

TEST(SqliteTable, MayHaveAnyName) {
  TestDatabase database(
      "CREATE TABLE \"a \"\"b\"\" 'c'\"(\"the key\" INTEGER PRIMARY KEY, "
      "\"select\" REAL); INSERT INTO \"a \"\"b\"\" 'c'\" VALUES (1, 5)");
  Block rows = scan_all(
      *open_source(database.spec("a \"b\" 'c'"), {{"select", ReadAs::number}}));
  EXPECT_EQ(rows.columns[0].float64(0), 5.0);
}

}  // namespace
}  // namespace penstock
