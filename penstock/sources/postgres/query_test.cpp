#include "penstock/sources/postgres/test_server.h"
#include "tests/conformance/query_suite.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, QuerySuite, TestSchema);

class PostgresQuery : public testing::Test {
 protected:
  Error refusal(const std::string& sql) {
    SourceSpec spec = schema_.query(sql);
    spec.key = {"id"};
    return error_of([&] { scan_all(*open_source(spec, {})); });
  }
  TestSchema schema_{
      "CREATE TABLE t(id int PRIMARY KEY, x float8); INSERT INTO t VALUES (1, "
      "1), (2, 2); CREATE SEQUENCE numbers; CREATE FUNCTION drop_them() "
      "RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM t; RETURN 1; END'"};
};

TEST_F(PostgresQuery, ThatWritesInAnyWayIsRefused) {
  for (const char* sql :
       {"WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone",
        "WITH a AS (SELECT 1) INSERT INTO t(id) VALUES (9) RETURNING id",
        "SELECT id INTO new FROM t", "SELECT id FROM t FOR UPDATE",
        "TRUNCATE t", "CREATE TABLE new AS SELECT 1 AS id",
        "COPY t TO PROGRAM 'true'", "SELECT nextval('numbers') AS id",
        "SELECT id FROM t WHERE drop_them() = 1"}) {
    Error error = refusal(sql);
    EXPECT_EQ(error.kind(), ErrorKind::request) << sql;
    EXPECT_EQ(error.parts().code, "source.query_writes") << sql;
    EXPECT_EQ(error.parts().where, "source.query") << sql;
  }
  EXPECT_EQ(schema_.ask("SELECT count(*) FROM t"), "2");
}

TEST_F(PostgresQuery, SaysWhatTheServerFoundWrong) {
  EXPECT_THAT(refusal("SELECT id FROM missing").what(),
              HasSubstr("relation \"missing\" does not exist"));
  EXPECT_THAT(refusal("SHOW TimeZone").what(), HasSubstr("syntax error"));
  EXPECT_EQ(refusal("SELECT 1 / (id - 1) AS id FROM t").parts().code,
            "postgres.failed");
  EXPECT_THAT(refusal("SELECT 1 / (id - 1) AS id FROM t").parts().next,
              HasSubstr("source.query"));
}

TEST_F(PostgresQuery, KnowsTheTypesOfItsColumns) {
  schema_.execute(
      "CREATE DOMAIN share AS numeric(5, 2); CREATE TYPE band AS ENUM ('a')");
  Schema schema = read_schema(schema_.query(
      "SELECT 1::share AS a, 'a'::" + schema_.name() +
      ".band AS b, now()::timestamptz(3) AS c, true AS d, 'x' AS e"));
  ASSERT_EQ(schema.columns.size(), 5u);
  EXPECT_EQ(schema.columns[0].declared, "numeric(5,2)");
  EXPECT_THAT(schema.columns[1].declared, HasSubstr("band"));
  EXPECT_TRUE(schema.columns[2].timestamp);
  EXPECT_TRUE(schema.columns[3].boolean);
  EXPECT_TRUE(schema.columns[4].text);
}

TEST_F(PostgresQuery, ShowsOneMomentToAllOfAScan) {
  SourceSpec spec = schema_.query("SELECT a.id, a.x FROM t a, t b");
  spec.key = {"id"};
  auto source = open_source(spec, {{"x", ReadAs::number}});
  auto partitions = source->partitions(4);
  EXPECT_EQ(partitions.size(), 1u);
  schema_.execute("UPDATE t SET x = 0");
  std::int64_t rows = 0;
  source->open_reader()->scan(partitions[0], {}, [&](KeyList&, Block& block) {
    rows += block.rows;
    for (std::int64_t row = 0; row < block.rows; ++row)
      EXPECT_GT(block.columns[0].as_float64(row), 0);
    return true;
  });
  EXPECT_EQ(rows, 4);
}

TEST_F(PostgresQuery, NamesTheCastToWriteInIt) {
  SourceSpec spec = schema_.query("SELECT id, point(x, x) AS p FROM t");
  spec.key = {"id"};
  Error error = error_of([&] { open_source(spec, {{"p", ReadAs::number}}); });
  EXPECT_EQ(error.parts().code, "source.column_type");
  spec.key = {"p"};
  error = error_of([&] { open_source(spec, {}); });
  EXPECT_EQ(error.parts().code, "source.key_type");
  EXPECT_THAT(error.parts().next,
              HasSubstr("cast it in the query: \"p\"::text AS \"p\""));
}

TEST_F(PostgresQuery, CannotBeReadWhereARightIsMissing) {
  schema_.execute("GRANT USAGE ON SCHEMA " + schema_.name() +
                  " TO password_only");
  SourceSpec spec = schema_.query("SELECT id FROM " + schema_.name() + ".t");
  spec.uri = schema_.uri_of("password_only:open%2C%20sesame");
  spec.key = {"id"};
  EXPECT_EQ(error_of([&] { open_source(spec, {}); }).parts().code,
            "postgres.permission");
}

}  // namespace
}  // namespace penstock
