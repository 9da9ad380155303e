#include <gmock/gmock.h>

#include <limits>

#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class PostgresWriter : public testing::Test {
 protected:
  /// A block of one column with one value, which `append` adds.
  static Block one(ColumnType type,
                   const std::function<void(Column&)>& append) {
    Block block;
    block.columns.resize(1);
    block.columns[0].type = type;
    append(block.columns[0]);
    block.rows = 1;
    return block;
  }
  static Block text(const std::string& value,
                    ColumnType type = ColumnType::text) {
    return one(type, [&](Column& to) { to.append_text(value); });
  }
  static Block integer(std::int64_t value) {
    return one(ColumnType::int64, [&](Column& to) { to.append_int64(value); });
  }
  static Block number(double value) {
    return one(ColumnType::float64,
               [&](Column& to) { to.append_float64(value); });
  }
  /// What a column `x` declared so holds after it was given this value.
  std::string written(const Block& block, const std::string& declared) {
    auto writer = create_table(
        schema_.spec(),
        {{.name = "x", .type = block.columns[0].type, .declared = declared}},
        true);
    writer->write(block);
    writer->finish();
    return schema_.ask("SELECT x FROM t");
  }
  std::unique_ptr<TableWriter> make(bool replace = false) {
    return create_table(
        schema_.spec(),
        {{.name = "x", .type = ColumnType::int64, .primary_key = true}},
        replace);
  }

  TestSchema schema_{"SET TimeZone = 'UTC'"};
};

TEST_F(PostgresWriter, WritesEveryTypeAsItIsDeclared) {
  EXPECT_EQ(written(integer(-5), ""), "-5");
  EXPECT_EQ(written(integer(-5), "int4"), "-5");
  EXPECT_EQ(written(integer(-5), "int2"), "-5");
  EXPECT_EQ(written(number(2.5), ""), "2.5");
  EXPECT_EQ(written(number(2.5), "float4"), "2.5");
  EXPECT_EQ(written(number(1700000000.25), "timestamptz"),
            "2023-11-14 22:13:20.25+00");
  EXPECT_EQ(written(text("abc"), ""), "abc");
  EXPECT_EQ(written(text("abc"), "varchar(9)"), "abc");
  EXPECT_EQ(written(text("ab"), "char(3)"), "ab ");
  EXPECT_EQ(written(text("2023-11-14T22:13:20.123Z"), "timestamptz"),
            "2023-11-14 22:13:20.123+00");
  EXPECT_EQ(written(text("2023-11-14T22:13:20"), "timestamp"),
            "2023-11-14 22:13:20");
  EXPECT_EQ(written(text("[1,  2]", ColumnType::json), ""), "[1,  2]");
  EXPECT_EQ(written(text("[1,  2]", ColumnType::json), "jsonb"), "[1, 2]");
  EXPECT_EQ(written(text("[1,  2]", ColumnType::json), "text"), "[1,  2]");
  EXPECT_EQ(written(one(ColumnType::boolean,
                        [](Column& to) { to.append_boolean(true); }),
                    ""),
            "t");
  EXPECT_EQ(written(one(ColumnType::uuid,
                        [](Column& to) {
                          to.append_uuid(reinterpret_cast<const std::byte*>(
                              "0123456789abcdef"));
                        }),
                    ""),
            "30313233-3435-3637-3839-616263646566");
  EXPECT_EQ(
      written(one(ColumnType::int64, [](Column& to) { to.append_null(); }), ""),
      "NULL");
}

TEST_F(PostgresWriter, RefusesAValueThatDoesNotFit) {
  for (const auto& wrong :
       {std::pair{integer(32768), "int2"},
        {integer(std::int64_t{1} << 31), "int4"},
        {text("yesterday"), "timestamptz"},
        {number(std::numeric_limits<double>::infinity()), "timestamp"}}) {
    Error error = error_of([&] { written(wrong.first, wrong.second); });
    EXPECT_EQ(error.kind(), ErrorKind::request) << wrong.second;
    EXPECT_EQ(error.parts().code, "postgres.value");
    EXPECT_THAT(error.what(), HasSubstr("row 1"));
  }
}

TEST_F(PostgresWriter, RefusesATypeThatItDoesNotWrite) {
  for (const char* declared : {"text", "numeric", "bytea"}) {
    Error error = error_of([&] { written(integer(1), declared); });
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "postgres.type");
    EXPECT_THAT(error.parts().next, HasSubstr("bigint"));
  }
}

TEST_F(PostgresWriter, PassesOnWhatTheServerRefuses) {
  EXPECT_THAT(
      error_of([&] { written(text("[1,", ColumnType::json), "json"); }).what(),
      HasSubstr("invalid input syntax for type json"));
  EXPECT_EQ(
      error_of([&] { written(text(std::string("a\0b", 3)), ""); }).parts().code,
      "postgres.encoding");
  EXPECT_EQ(error_of([&] {
              auto writer = make();
              writer->write(integer(1));
              writer->write(integer(1));
              writer->finish();
            })
                .parts()
                .code,
            "postgres.failed");
}

TEST_F(PostgresWriter, IsSeenByOthersWhenItIsFinished) {
  auto writer = make();
  writer->write(integer(1));
  EXPECT_EQ(schema_.ask("SELECT count(*) FROM pg_class WHERE relname = 't' AND "
                        "relnamespace = '" +
                        schema_.name() + "'::regnamespace"),
            "0");
  writer->finish();
  EXPECT_EQ(schema_.ask("SELECT count(*) FROM t"), "1");
}

TEST_F(PostgresWriter, LeavesNothingWithoutFinish) {
  make()->write(integer(1));
  EXPECT_FALSE(schema_.session().try_execute("TABLE t"));
}

TEST_F(PostgresWriter, IsNotReplacedUnlessAsked) {
  schema_.execute("CREATE TABLE t(old int); INSERT INTO t VALUES (7)");
  Error error = error_of([&] { make(); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.table_exists");
  make(true)->write(integer(1));  // not finished
  EXPECT_EQ(schema_.ask("SELECT old FROM t"), "7");
  auto writer = make(true);
  writer->write(integer(1));
  writer->finish();
  EXPECT_EQ(schema_.ask("SELECT x FROM t"), "1");
}

TEST_F(PostgresWriter, DoesNotReplaceAView) {
  schema_.execute("CREATE VIEW t AS SELECT 1 AS x");
  Error error = error_of([&] { make(true); });
  EXPECT_EQ(error.parts().code, "source.table_exists");
  EXPECT_THAT(error.what(), HasSubstr("another object (view)"));
}

TEST_F(PostgresWriter, DoesNotDropWhatOthersDependOn) {
  schema_.execute("CREATE TABLE t(x int); CREATE VIEW v AS TABLE t");
  EXPECT_EQ(error_of([&] { make(true); }).parts().code, "postgres.dependents");
}

TEST_F(PostgresWriter, NamesASchemaThatIsMissing) {
  SourceSpec spec = schema_.spec();
  spec.table = "no_such_schema.t";
  EXPECT_EQ(error_of([&] { create_table(spec, {{.name = "x"}}, false); })
                .parts()
                .code,
            "postgres.no_schema");
}

TEST_F(PostgresWriter, WritesMoreThanFitsIntoOneMessage) {
  auto writer = create_table(schema_.spec(),
                             {{.name = "x", .type = ColumnType::text}}, false);
  Block block = text(std::string(1 << 19, 'x'));
  for (int i = 0; i < 7; ++i) writer->write(block);
  writer->finish();
  EXPECT_EQ(schema_.ask("SELECT sum(length(x)) FROM t"),
            std::to_string(7 << 19));
}

TEST(PostgresWriterWithoutATable, IsRefused) {
  SourceSpec spec;
  spec.kind = "postgres";
  spec.uri = "postgresql:///lab";
  EXPECT_EQ(error_of([&] { create_table(spec, {{.name = "x"}}, false); })
                .parts()
                .code,
            "source.no_table");
}

}  // namespace
}  // namespace penstock
