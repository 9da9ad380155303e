#include <gmock/gmock.h>

#include <vector>

#include "penstock/base/log.h"
#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What is logged meanwhile.
class Logged {
 public:
  Logged() {
    set_log_writer(
        [this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
  }
  ~Logged() { set_log_writer({}); }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

class PostgresRowKey : public testing::Test {
 protected:
  std::vector<std::string> keys_of(const SourceSpec& spec) {
    auto source = open_source(spec, {});
    ScannedBlock block = scan_all(*source);
    std::vector<std::string> keys;
    for (std::int64_t row = 0; row < block.rows; ++row)
      keys.emplace_back(block.keys.bytes(row));
    Block again;
    source->open_reader()->read(block.keys, again);
    EXPECT_EQ(again.rows, block.rows);
    return keys;
  }
  std::vector<std::string> keys_of(const std::string& columns,
                                   const std::string& values) {
    schema_.execute("DROP TABLE IF EXISTS t; CREATE TABLE t(" + columns +
                    "); INSERT INTO t VALUES " + values);
    return keys_of(schema_.spec());
  }

  TestSchema schema_;
};

TEST_F(PostgresRowKey, MayBeMadeOfPartsOfManyTypes) {
  EXPECT_THAT(
      keys_of("station int2, seen timestamptz, PRIMARY KEY (station, seen)",
              "(12, '2026-01-02 03:04:05.25+02'), (12, 'infinity')"),
      ElementsAre("B12\t2026-01-02 01:04:05.25+00", "B12\tinfinity"));
  EXPECT_THAT(keys_of("day date, up bool, PRIMARY KEY (day, up)",
                      "('2026-01-02', true)"),
              ElementsAre("2026-01-02\ttrue"));
  EXPECT_THAT(keys_of("id uuid, word char(5), PRIMARY KEY (id, word)",
                      "('00112233-4455-6677-8899-AABBCCDDEEFF', 'ab')"),
              ElementsAre("00112233-4455-6677-8899-aabbccddeeff\tab"));
  schema_.execute(
      "CREATE TYPE band AS ENUM ('vhf', 'uhf'); CREATE DOMAIN place AS text");
  EXPECT_THAT(keys_of("band band, at place, t timestamp(3), PRIMARY KEY (band, "
                      "at, t)",
                      "('uhf', E'a\\tb', '2026-01-02')"),
              ElementsAre("uhf\ta\nJb\t2026-01-02 00:00:00"));
}

TEST_F(PostgresRowKey, OfTimesIsTheSameHoweverTheServerWritesDates) {
  schema_.execute("ALTER ROLE CURRENT_USER SET DateStyle = 'German'");
  EXPECT_THAT(
      keys_of("n int, day date, PRIMARY KEY (n, day)", "(1, '2026-01-02')"),
      ElementsAre("A1\t2026-01-02"));
  schema_.execute("ALTER ROLE CURRENT_USER RESET DateStyle");
}

TEST_F(PostgresRowKey, HasNoPartsWithoutAnOrderThatTheirTextHas) {
  for (const char* type : {"float8", "numeric", "jsonb", "interval", "int[]"}) {
    schema_.execute("DROP TABLE IF EXISTS t; CREATE TABLE t(a int, b " +
                    std::string(type) + ")");
    SourceSpec spec = schema_.spec();
    spec.key = {"a", "b"};
    Error error = error_of([&] { open_source(spec, {}); });
    EXPECT_EQ(error.parts().code, "source.key_type") << type;
    EXPECT_THAT(error.what(), HasSubstr("'b'")) << type;
  }
}

TEST_F(PostgresRowKey, HasNoColumnsThatThePrimaryKeyOnlyIncludes) {
  schema_.execute(
      "CREATE TABLE t(x float8, id int, PRIMARY KEY (id) INCLUDE (x))");
  EXPECT_EQ(open_source(schema_.spec(), {})->facts().key, ColumnType::int64);
}

class PostgresPlace : public PostgresRowKey {
 protected:
  void SetUp() override {
    if (!IsSkipped())
      schema_.execute(
          "CREATE TABLE t(x float8); INSERT INTO t SELECT generate_series(1, "
          "1000)");
  }
};

TEST_F(PostgresPlace, IsPageAndLineInOneNumber) {
  ScannedBlock block =
      scan_all(*open_source(schema_.spec(), {{"x", ReadAs::number}}));
  ASSERT_EQ(block.rows, 1000);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const std::int64_t key = block.keys.integer(row);
    const double x = block.columns[0].as_float64(row);
    if (row % 100 != 0) continue;
    EXPECT_EQ(schema_.ask("SELECT ctid FROM t WHERE x = " + std::to_string(x)),
              "(" + std::to_string(key >> 16) + "," +
                  std::to_string(key & 0xffff) + ")");
  }
}

TEST_F(PostgresPlace, IsSaidToBelongToThisSnapshot) {
  Logged log;
  open_source(schema_.spec(), {});
  ASSERT_EQ(log.lines().size(), 1u);
  EXPECT_THAT(
      log.lines()[0],
      AllOf(HasSubstr(schema_.name() + ".t"), HasSubstr("ctid"),
            HasSubstr("may differ in another run"), HasSubstr("source.key")));
  open_source(schema_.spec(), {}, {.keys = false});
  EXPECT_EQ(log.lines().size(), 1u) << "nobody asked for keys";
}

TEST_F(PostgresPlace, MakesASourceAnotherOneAfterEveryWrite) {
  auto identity = [&] { return open_source(schema_.spec(), {})->identity(); };
  const Json before = identity();
  EXPECT_EQ(*before.find("key"), Json("ctid"));
  // Other tests write to the server, so that it may differ before that, too.
  schema_.execute("UPDATE t SET x = x WHERE x = 1");
  EXPECT_NE(identity(), before);
  EXPECT_EQ(before.find("version"), nullptr)
      << "the server's numbers of moments may come again where it is restored";
}

TEST_F(PostgresPlace, OfARowThatMovedIsGoneOrHoldsAnother) {
  auto source = open_source(schema_.spec(), {{"x", ReadAs::number}});
  ScannedBlock block = scan_all(*source);
  schema_.execute("UPDATE t SET x = x WHERE x = 1");
  Block again;
  Error error =
      error_of([&] { source->open_reader()->read(block.keys, again); });
  EXPECT_EQ(error.parts().code, "source.row_gone");
}

TEST_F(PostgresPlace, IsNoKeyWhereSeveralRowsShareIt) {
  schema_.execute(
      "CREATE TABLE child() INHERITS (t); CREATE TABLE p(x int) PARTITION BY "
      "LIST (x); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)");
  for (const char* table : {"t", "p"}) {
    Error error = error_of([&] { open_source(schema_.spec(table), {}); });
    EXPECT_EQ(error.parts().code, "source.no_key") << table;
    EXPECT_THAT(error.parts().why, HasSubstr("physical position")) << table;
  }
  EXPECT_EQ(*open_source(schema_.spec("p1"), {})->identity().find("key"),
            Json("ctid"));
}

}  // namespace
}  // namespace penstock
