#include <gmock/gmock.h>

#include <cstdlib>

#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTable =
    "CREATE TABLE t(id int PRIMARY KEY, band text, x float8); INSERT INTO t "
    "VALUES (1, 'uhf', 1.0), (2, 'vhf', 2.0), (3, 'uhf', 3.0)";

class PostgresSource : public testing::Test {
 protected:
  std::int64_t rows_where(const std::string& where) {
    SourceSpec spec = schema_.spec();
    spec.where = where;
    return scan_all(*open_source(spec, {{"x", ReadAs::number}})).rows;
  }
  Error where_error(const std::string& where) {
    return error_of([&] { rows_where(where); });
  }

  TestSchema schema_{kTable};
};

TEST_F(PostgresSource, NamesAnUnknownColumnOfWhere) {
  Error error = where_error("bandd = 'uhf'");
  EXPECT_EQ(error.parts().code, "source.where");
  EXPECT_THAT(error.what(), HasSubstr("column \"bandd\" does not exist"));
  EXPECT_EQ(error.parts().next,
            "write an SQL condition over its columns: id, band, x");
}

TEST_F(PostgresSource, NeedsNoKeyToBeScanned) {
  schema_.execute("ALTER TABLE t DROP CONSTRAINT t_pkey");
  SourceSpec spec = schema_.spec();
  auto source = open_source(spec, {{"x", ReadAs::value}}, {.keys = false});
  EXPECT_FALSE(source->abilities().by_key);
  ScannedBlock block = scan_all(*source);
  ASSERT_EQ(block.rows, 3);
  EXPECT_EQ(block.keys.size(), 0);
  EXPECT_EQ(block.columns[0].as_float64(2), 3.0);
}

TEST_F(PostgresSource, IsAnotherCopyForASessionThatMayReadOtherRows) {
  auto copy = [&] {
    return open_source(schema_.spec(), {{"x", ReadAs::number}})
        ->identity()
        .find(kThisCopy)
        ->string();
  };
  const std::string before = copy();
  EXPECT_EQ(copy(), before);
  const std::string options = std::getenv("PGOPTIONS") == nullptr
                                  ? std::string()
                                  : std::getenv("PGOPTIONS");
  ::setenv("PGOPTIONS", (options + " -c extra_float_digits=0").c_str(), 1);
  EXPECT_NE(copy(), before);
  ::setenv("PGOPTIONS", options.c_str(), 1);
  EXPECT_EQ(copy(), before);
}

TEST_F(PostgresSource, TakesOneConditionWithoutParameters) {
  for (const char* where :
       {"true); DELETE FROM t WHERE (true", "x > $1", "true /* and so on", "x",
        "band > 5", "x > 'abc'", "count(*) > 1"})
    EXPECT_EQ(where_error(where).parts().code, "source.where") << where;
  EXPECT_EQ(rows_where(""), 3);
}

TEST_F(PostgresSource, ReadsTimesInWhereAsUtc) {
  schema_.execute(
      "ALTER TABLE t ADD seen timestamptz DEFAULT '2026-01-01 "
      "00:30:00+00'; SET TimeZone = 'Asia/Tokyo'");
  EXPECT_EQ(rows_where("seen < '2026-01-01 00:31:00'"), 3);
  EXPECT_EQ(rows_where("seen < '2026-01-01 00:29:00'"), 0);
}

TEST_F(PostgresSource, EstimatesTheRowsOfALargeTable) {
  schema_.execute(
      "CREATE TABLE large(id int PRIMARY KEY, filler text) WITH "
      "(autovacuum_enabled = off); ALTER TABLE large ALTER filler SET STORAGE "
      "PLAIN; INSERT INTO large SELECT i, repeat('x', 5000) FROM "
      "generate_series(1, 3000) i; CREATE VIEW v AS SELECT * FROM t");
  auto source = open_source(schema_.spec("large"), {});
  EXPECT_EQ(source->count().rows, std::nullopt);  // never analysed
  schema_.execute("ANALYZE large");
  EXPECT_EQ(source->count().rows, 3000);
  SourceSpec some = schema_.spec("large");
  some.where = "id > 700";
  EXPECT_EQ(open_source(some, {})->count().rows, std::nullopt);
  SourceSpec view = schema_.spec("v");
  view.key = {"id"};
  EXPECT_EQ(open_source(view, {})->count().rows, std::nullopt);
}

TEST_F(PostgresSource, IsShownWithItsPlaceAndNoSecret) {
  schema_.execute("GRANT USAGE ON SCHEMA " + schema_.name() +
                  " TO password_only; GRANT SELECT ON t TO password_only");
  SourceSpec spec = schema_.spec();
  spec.uri = schema_.uri_of("password_only:open%2C%20sesame");
  auto source = open_source(spec, {{"x", ReadAs::number}});
  const Json& identity = source->identity();
  for (const std::string& shown : {source->shown(), identity.dump()}) {
    EXPECT_THAT(shown, HasSubstr(spec.table + " in postgresql://127.0.0.1:"));
    EXPECT_THAT(shown, testing::Not(HasSubstr("sesame")));
  }
  EXPECT_EQ(*identity.find("kind"), Json("postgres"));
  EXPECT_EQ(*identity.find("key"), Json("id"));
  EXPECT_EQ(*identity.find("columns"), Json(Json::Array{"x"}));
}

TEST_F(PostgresSource, NamesTheSchemaThatMayNotBeUsed) {
  SourceSpec spec = schema_.spec();
  spec.uri = schema_.uri_of("password_only:open%2C%20sesame");
  Error error = error_of([&] { open_source(spec, {}); });
  EXPECT_EQ(error.parts().code, "postgres.permission");
  EXPECT_THAT(error.parts().next,
              HasSubstr("GRANT USAGE ON SCHEMA \"" + schema_.name() +
                        "\" TO \"password_only\""));
}

TEST_F(PostgresSource, TellsAPolicyFromAGrantThatIsMissing) {
  schema_.execute("GRANT USAGE ON SCHEMA " + schema_.name() +
                  " TO password_only; GRANT SELECT ON t TO password_only; "
                  "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON "
                  "t USING (band = 'uhf')");
  SourceSpec spec = schema_.spec();
  spec.uri = schema_.uri_of("password_only:open%2C%20sesame");
  EXPECT_EQ(scan_all(*open_source(spec, {})).rows, 2);
  spec.uri += "?options=-c%20row_security%3Doff";
  Error error = error_of([&] { scan_all(*open_source(spec, {})); });
  EXPECT_EQ(error.parts().code, "postgres.permission");
  EXPECT_THAT(error.parts().next, HasSubstr("row_security is off"));
}

TEST_F(PostgresSource, NamesTheGrantThatIsMissing) {
  schema_.execute("GRANT USAGE ON SCHEMA " + schema_.name() +
                  " TO password_only");
  SourceSpec spec = schema_.spec();
  spec.uri = schema_.uri_of("password_only:open%2C%20sesame");
  for (const char* where : {"", "x > 1"}) {
    spec.where = where;
    Error error = error_of([&] { open_source(spec, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "postgres.permission");
    EXPECT_THAT(error.parts().next, HasSubstr("GRANT SELECT ON " + spec.table +
                                              " TO \"password_only\""));
  }
}

}  // namespace
}  // namespace penstock
