#include <gmock/gmock.h>

#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class PostgresTable : public testing::Test {
 protected:
  SourceSpec named(const std::string& table) {
    SourceSpec spec = schema_.spec();
    spec.table = table;
    // What a role's own search path would say.
    spec.uri += "&options=-c%20search_path%3D" + schema_.name();
    return spec;
  }
  std::vector<std::string> columns(const std::string& table) {
    std::vector<std::string> names;
    for (const ColumnInfo& column : read_schema(named(table)).columns)
      names.push_back(column.name);
    return names;
  }

  TestSchema schema_;
};

TEST_F(PostgresTable, IsLookedUpInTheSearchPath) {
  schema_.execute("CREATE TABLE measured(id int)");
  EXPECT_THAT(columns("measured"), testing::ElementsAre("id"));
  EXPECT_THAT(columns(schema_.name() + ".measured"),
              testing::ElementsAre("id"));
}

TEST_F(PostgresTable, IsTakenAsWrittenElseInSmallLetters) {
  schema_.execute(
      "CREATE TABLE \"Mixed\"(a int); CREATE TABLE plain(b int); "
      "CREATE TABLE \"a.b c\"(d int)");
  EXPECT_THAT(columns("Mixed"), testing::ElementsAre("a"));
  EXPECT_THAT(columns("PLAIN"), testing::ElementsAre("b"));
  EXPECT_THAT(columns("a.b c"), testing::ElementsAre("d"));
}

TEST_F(PostgresTable, MayBeInASchemaWithADotInItsName) {
  std::string lab = schema_.name() + ".lab";
  schema_.execute("CREATE SCHEMA \"" + lab + "\"; CREATE TABLE \"" + lab +
                  "\".t(a int); CREATE TABLE \"" + lab +
                  "\".\"u.v \"\"w\"(b int)");
  std::string quoted = "\"" + lab + "\".";
  for (const std::string& name :
       {lab + ".t", quoted + "t", quoted + "\"t\"", quoted + "T"})
    EXPECT_THAT(columns(name), testing::ElementsAre("a")) << name;
  for (const std::string& name : {lab + ".u.v \"w", quoted + "\"u.v \"\"w\""})
    EXPECT_THAT(columns(name), testing::ElementsAre("b")) << name;
  for (const std::string& name :
       {quoted, quoted + "\"t", lab + "..t", lab + ".t.", quoted + "t.x"})
    EXPECT_EQ(error_of([&] { columns(name); }).parts().code,
              "source.unknown_table")
        << name;
  schema_.execute("DROP SCHEMA \"" + lab + "\" CASCADE");
}

TEST_F(PostgresTable, MayBeLeftOpenWhenThereIsOne) {
  schema_.execute(
      "CREATE TABLE single(id int); CREATE VIEW v AS SELECT 1 AS x");
  EXPECT_THAT(columns(""), testing::ElementsAre("id"));
  schema_.execute("CREATE TABLE other(id int)");
  Error error = error_of([&] { columns(""); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_THAT(error.what(), HasSubstr("other, single"));
}

TEST_F(PostgresTable, IsMissedWhereThereIsNone) {
  Error error = error_of([&] { columns(""); });
  EXPECT_EQ(error.parts().code, "source.unknown_table");
  EXPECT_THAT(error.what(), HasSubstr("holds no table"));
}

TEST_F(PostgresTable, ThatIsUnknownNamesTheNearest) {
  schema_.execute("CREATE TABLE measurements(id int)");
  for (const char* name :
       {"measurments", "no.measurements", "measurements\""}) {
    Error error = error_of([&] { columns(name); });
    EXPECT_EQ(error.kind(), ErrorKind::request) << name;
    EXPECT_EQ(error.parts().code, "source.unknown_table");
    EXPECT_THAT(error.what(), HasSubstr("'measurements'")) << name;
  }
}

TEST_F(PostgresTable, TellsItsColumns) {
  schema_.execute(
      "CREATE TABLE t(id int PRIMARY KEY, gone int, word "
      "varchar(9), \"at\" timestamptz, heard bool, doc jsonb, n "
      "numeric(5,2)); ALTER TABLE t DROP COLUMN gone");
  Schema schema = read_schema(schema_.spec());
  std::vector<std::string> declared;
  for (const ColumnInfo& column : schema.columns)
    declared.push_back(column.declared);
  EXPECT_THAT(declared,
              testing::ElementsAre("integer", "character varying(9)",
                                   "timestamp with time zone", "boolean",
                                   "jsonb", "numeric(5,2)"));
  EXPECT_TRUE(schema.find("id")->primary_key);
  EXPECT_FALSE(schema.find("word")->primary_key);
  EXPECT_TRUE(schema.find("at")->timestamp);
  EXPECT_TRUE(schema.find("heard")->boolean);
  EXPECT_EQ(schema.find("n")->as, ReadAs::number);
  EXPECT_EQ(schema.find("doc")->as, ReadAs::value);
}

TEST_F(PostgresTable, NamesTheNearestColumn) {
  schema_.execute("CREATE TABLE t(id int PRIMARY KEY, snr_db float8)");
  Error error = error_of([&] {
    open_source(schema_.spec(), {{"snr_bd", ReadAs::number}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.unknown_column");
  EXPECT_THAT(error.what(), HasSubstr("'snr_db'"));
}

TEST_F(PostgresTable, MayBeAViewAPartitionedOrAForeignTable) {
  schema_.execute(
      "CREATE TABLE t(id int PRIMARY KEY, x float8) PARTITION BY RANGE (id); "
      "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10); "
      "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20); "
      "INSERT INTO t SELECT i, i FROM generate_series(5, 14) i; "
      "CREATE VIEW v AS SELECT * FROM t; "
      "CREATE MATERIALIZED VIEW m AS SELECT * FROM t");
  for (const char* name : {"t", "v", "m"}) {
    SourceSpec spec = schema_.spec(name);
    spec.key = {"id"};
    auto source = open_source(spec, {{"x", ReadAs::number}});
    EXPECT_EQ(source->partitions(4).size(), 1u) << name;
    EXPECT_EQ(scan_all(*source).rows, 10) << name;
  }
}

TEST_F(PostgresTable, WithDifficultNamesIsRead) {
  schema_.execute(
      "CREATE TABLE \"it's \"\"t\"(\"the \"\"id\" int PRIMARY KEY, "
      "\"select\" int); INSERT INTO \"it's \"\"t\" VALUES (1, 2)");
  auto source =
      open_source(schema_.spec("it's \"t"), {{"select", ReadAs::integer}});
  EXPECT_EQ(scan_all(*source).columns[0].int64(0), 2);
  Block block;
  source->open_reader()->read(integer_keys({1}), block);
  EXPECT_EQ(block.rows, 1);
}

}  // namespace
}  // namespace penstock
