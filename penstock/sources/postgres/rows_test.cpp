#include <gmock/gmock.h>

#include <limits>
#include <tuple>

#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PostgresColumn : public testing::Test {
 protected:
  /// A table (id, x) whose x is declared so and holds these SQL literals.
  void make(const std::string& declared,
            const std::vector<std::string>& values) {
    schema_.execute(
        "DROP TABLE IF EXISTS t; CREATE TABLE t(id int PRIMARY "
        "KEY, x " +
        declared + ")");
    for (std::size_t at = 0; at < values.size(); ++at)
      schema_.execute("INSERT INTO t VALUES (" + std::to_string(at) + ", " +
                      values[at] + ")");
  }
  Block read(ReadAs as) {
    return scan_all(*open_source(schema_.spec(), {{"x", as}}));
  }
  std::vector<double> numbers(const std::string& declared,
                              const std::vector<std::string>& values) {
    make(declared, values);
    Block block = read(ReadAs::number);
    EXPECT_TRUE(block.problems.empty());
    std::vector<double> all;
    for (std::int64_t row = 0; row < block.rows; ++row)
      all.push_back(block.columns[0].as_float64(row));
    return all;
  }
  std::vector<std::int64_t> integers(const std::string& declared,
                                     const std::vector<std::string>& values) {
    make(declared, values);
    Block block = read(ReadAs::integer);
    EXPECT_TRUE(block.problems.empty());
    std::span<const std::int64_t> all =
        block.columns[0].values.as<std::int64_t>();
    return {all.begin(), all.end()};
  }
  std::vector<std::string> texts(const std::string& declared,
                                 const std::vector<std::string>& values,
                                 ReadAs as = ReadAs::json) {
    make(declared, values);
    Block block = read(as);
    std::vector<std::string> all;
    for (std::int64_t row = 0; row < block.rows; ++row)
      all.emplace_back(block.columns[0].text(row));
    return all;
  }
  /// What is wrong with the only value, or "nothing".
  std::string problem(const std::string& declared, const std::string& value,
                      ReadAs as) {
    make(declared, {value});
    Block block = read(as);
    if (block.problems.empty()) return "nothing";
    EXPECT_EQ(block.problems[0].row, 0);
    EXPECT_EQ(block.problems[0].column, 0u);
    EXPECT_FALSE(block.columns[0].valid(0));
    return block.problems[0].why;
  }
  Error refusal(const std::string& declared, ReadAs as) {
    make(declared, {});
    return error_of([&] { read(as); });
  }
  /// The row of such a column through the view that its refusal names.
  Block read_as_told(const std::string& declared, const std::string& value,
                     ReadAs as) {
    make(declared, {value});
    std::string next = error_of([&] { read(as); }).parts().next;
    std::size_t begin = next.find("..., ");
    EXPECT_NE(begin, std::string::npos) << declared << ": " << next;
    if (begin == std::string::npos) return {};
    schema_.execute("DROP VIEW IF EXISTS v; CREATE VIEW v AS SELECT id, " +
                    next.substr(begin + 5));
    SourceSpec spec = schema_.spec("v");
    spec.key = {"id"};
    Block block = scan_all(*open_source(spec, {{"x", as}}));
    EXPECT_TRUE(block.problems.empty()) << declared << ": " << next;
    schema_.execute("DROP VIEW v");
    return block;
  }

  TestSchema schema_;
};

using PostgresNumber = PostgresColumn;

TEST_F(PostgresNumber, IsAnIntegerOfAnySize) {
  EXPECT_THAT(numbers("int2", {"-32768", "7"}), ElementsAre(-32768, 7));
  EXPECT_THAT(numbers("int4", {"-2147483648"}), ElementsAre(-2147483648.0));
  EXPECT_THAT(numbers("int8", {"9007199254740993"}),
              ElementsAre(9007199254740992.0));
}

TEST_F(PostgresNumber, IsAFloatOfAnySize) {
  EXPECT_THAT(numbers("float4", {"0.1", "-2.5"}),
              ElementsAre(static_cast<double>(0.1f), -2.5));
  EXPECT_THAT(numbers("float8", {"0.1", "1e300"}), ElementsAre(0.1, 1e300));
}

TEST_F(PostgresNumber, KeepsTheWidthOfItsColumn) {
  for (auto [declared, type] :
       {std::pair("int2", ColumnType::number(Dtype::int16)),
        std::pair("int4", ColumnType::number(Dtype::int32)),
        std::pair("int8", ColumnType::int64),
        std::pair("float4", ColumnType::number(Dtype::float32)),
        std::pair("float8", ColumnType::float64),
        std::pair("bool", ColumnType::boolean),
        std::pair("numeric", ColumnType::float64),
        std::pair("date", ColumnType::float64),
        std::pair("text", ColumnType::float64)}) {
    make(declared, {});
    auto source = open_source(schema_.spec(), {{"x", ReadAs::number}});
    EXPECT_EQ(source->types()[0], type) << declared;
  }
  make("int8", {"9007199254740993"});
  EXPECT_EQ(read(ReadAs::number).columns[0].int64(0), 9007199254740993);
}

TEST_F(PostgresNumber, IsANumericAtItsNearestFloat64) {
  EXPECT_THAT(numbers("numeric", {"0.1", "-12345.6789", "1e-400", "0",
                                  "123456789012345678901234567890"}),
              ElementsAre(0.1, -12345.6789, 0.0, 0.0,
                          123456789012345678901234567890.0));
}

TEST_F(PostgresNumber, IsOneOrZeroOfABoolean) {
  EXPECT_THAT(numbers("bool", {"true", "false"}), ElementsAre(1, 0));
  EXPECT_TRUE(read_schema(schema_.spec()).find("x")->boolean);
}

TEST_F(PostgresNumber, IsTheSecondsOfATime) {
  EXPECT_THAT(
      numbers("timestamptz", {"'2023-11-14 23:13:20.25+01'", "'epoch'"}),
      ElementsAre(1700000000.25, 0));
  EXPECT_THAT(numbers("timestamp", {"'2023-11-14 22:13:20.25'"}),
              ElementsAre(1700000000.25));
  EXPECT_THAT(numbers("date", {"'2023-11-15'", "'1969-12-31'"}),
              ElementsAre(1700006400, -86400));
  EXPECT_TRUE(read_schema(schema_.spec()).find("x")->timestamp);
}

TEST_F(PostgresNumber, IsTheSecondsOfAnIsoTimeInText) {
  EXPECT_THAT(numbers("text", {"'2023-11-14T22:13:20Z'", "'2023-11-15'"}),
              ElementsAre(1700000000, 1700006400));
  EXPECT_THAT(numbers("char(30)", {"'2023-11-15'"}), ElementsAre(1700006400));
  ColumnInfo x =
      *open_source(schema_.spec(), {{"x", ReadAs::number}})->schema().find("x");
  EXPECT_FALSE(x.timestamp);
  EXPECT_TRUE(x.text);
}

TEST_F(PostgresNumber, IsNoOtherText) {
  EXPECT_EQ(problem("text", "'abc'", ReadAs::number),
            "holds text 'abc' where a number or an ISO-8601 time is expected");
  EXPECT_THAT(problem("text", "''", ReadAs::number), HasSubstr("text ''"));
}

TEST_F(PostgresNumber, MayBeNanOrAnInfinity) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const char* type : {"float4", "float8", "numeric"})
    EXPECT_THAT(numbers(type, {"'NaN'", "'Infinity'", "'-Infinity'", "2.5"}),
                ElementsAre(testing::IsNan(), kInf, -kInf, 2.5))
        << type;
}

TEST_F(PostgresNumber, IsInTheRangeOfFloat64) {
  EXPECT_THAT(problem("numeric", "1e400", ReadAs::number),
              HasSubstr("1000000000"));
  EXPECT_EQ(problem("timestamptz", "'infinity'", ReadAs::number),
            "holds infinity where a finite time is expected");
  EXPECT_THAT(problem("date", "'-infinity'", ReadAs::number),
              HasSubstr("-infinity"));
}

TEST_F(PostgresNumber, MayBeNull) {
  for (const char* type : {"int8", "numeric", "timestamptz", "text", "bool"}) {
    make(type, {"NULL"});
    Block block = read(ReadAs::number);
    EXPECT_FALSE(block.columns[0].valid(0)) << type;
    EXPECT_TRUE(block.problems.empty());
  }
}

TEST_F(PostgresNumber, OfADomainIsThatOfItsType) {
  schema_.execute(
      "CREATE DOMAIN metres AS float8 CHECK (VALUE >= 0); CREATE "
      "DOMAIN height AS metres");
  EXPECT_THAT(numbers("height", {"2.5"}), ElementsAre(2.5));
}

TEST_F(PostgresNumber, IsNoUuidAndNoJson) {
  Error error = refusal("uuid", ReadAs::number);
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.column_type");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'x'"), HasSubstr("is uuid")));
  error = refusal("jsonb", ReadAs::number);
  EXPECT_THAT(error.parts().next,
              HasSubstr("(\"x\" ->> 'key')::float8 AS \"x\""));
}

TEST_F(PostgresNumber, IsMadeOfOtherTypesByTheCastThatIsNamed) {
  schema_.execute(
      "CREATE TYPE \"Band\" AS ENUM ('uhf', 'v h''f'); CREATE DOMAIN heard AS "
      "\"Band\"; CREATE DOMAIN pair AS int[]");
  for (ReadAs as : {ReadAs::number, ReadAs::integer})
    for (auto [declared, value, number] :
         std::initializer_list<std::tuple<const char*, const char*, int>>{
             {"\"Band\"", "'v h''f'", 1},
             {"heard", "'uhf'", 0},
             {"int4[]", "'{4,5}'", 4},
             {"float8[]", "'{4,5}'", 4},
             {"text[]", "'{6}'", 6},
             {"pair", "'{8}'", 8},
             {"time", "'00:02'", 120},
             {"money", "5", 5},
             {"oid", "9", 9},
             {"int4range", "'[3,5)'", 3},
             {"json", "'{\"key\": 7}'", 7},
             {"jsonb", "'{\"key\": 7}'", 7}}) {
      Block block = read_as_told(declared, value, as);
      ASSERT_EQ(block.rows, 1) << declared;
      if (as == ReadAs::number) {
        EXPECT_EQ(block.columns[0].as_float64(0), number) << declared;
      } else {
        EXPECT_EQ(block.columns[0].int64(0), number) << declared;
      }
    }
  for (const char* type : {"uuid", "bytea", "inet", "point"})
    EXPECT_EQ(refusal(type, ReadAs::number).parts().next, "name another column")
        << type;
}

TEST_F(PostgresNumber, OfAnIntervalIsItsSeconds) {
  EXPECT_THAT(numbers("interval", {"'1 day 00:00:01.5'", "'-2 weeks'"}),
              ElementsAre(86401.5, -14 * 86400.0));
  EXPECT_THAT(problem("interval", "'1 year 3 days'", ReadAs::number),
              testing::AllOf(HasSubstr("an interval with 12 months"),
                             HasSubstr("an interval without months")));
}

TEST_F(PostgresNumber, OfADateIsItsMidnight) {
  EXPECT_THAT(numbers("date", {"'1970-01-02'", "'1969-12-31'"}),
              ElementsAre(86400, -86400));
}

TEST_F(PostgresNumber, OfADomainOfAnyDepthIsThatOfItsType) {
  schema_.execute(
      "CREATE DOMAIN share AS numeric(5,2); CREATE DOMAIN half AS share CHECK "
      "(value < 50); CREATE DOMAIN since AS interval; CREATE DOMAIN day AS "
      "date");
  EXPECT_THAT(numbers("half", {"12.50"}), ElementsAre(12.5));
  EXPECT_THAT(numbers("since", {"'1 minute'"}), ElementsAre(60));
  EXPECT_THAT(numbers("day", {"'1970-01-03'"}), ElementsAre(2 * 86400.0));
}

using PostgresInteger = PostgresColumn;

TEST_F(PostgresInteger, KeepsItsBits) {
  EXPECT_THAT(integers("int8", {"9007199254740993", "-9223372036854775808"}),
              ElementsAre(9007199254740993, INT64_MIN));
  EXPECT_THAT(integers("int2", {"-5"}), ElementsAre(-5));
  EXPECT_THAT(integers("int4", {"5"}), ElementsAre(5));
  EXPECT_THAT(integers("bool", {"true"}), ElementsAre(1));
}

TEST_F(PostgresInteger, MayBeAnotherNumberWithoutAFraction) {
  EXPECT_THAT(integers("float8", {"3", "-4"}), ElementsAre(3, -4));
  EXPECT_THAT(integers("numeric", {"9223372036854775807", "5.00"}),
              ElementsAre(INT64_MAX, 5));
}

TEST_F(PostgresInteger, HasNoFractionAndFits) {
  EXPECT_EQ(problem("float8", "2.5", ReadAs::integer),
            "holds 2.5 where an integer of 64 bits is expected");
  EXPECT_EQ(problem("numeric", "-2.50", ReadAs::integer),
            "holds -2.50 where an integer of 64 bits is expected");
  for (const char* value : {"1e19", "'nan'", "'inf'"})
    EXPECT_THAT(problem("float8", value, ReadAs::integer),
                HasSubstr("an integer of 64 bits"));
  EXPECT_THAT(problem("numeric", "9223372036854775808", ReadAs::integer),
              HasSubstr("9223372036854775808"));
}

TEST_F(PostgresInteger, IsNoTimeAndNoText) {
  EXPECT_THAT(refusal("timestamptz", ReadAs::integer).parts().next,
              HasSubstr("extract(epoch FROM \"x\")::bigint"));
  EXPECT_THAT(refusal("text", ReadAs::integer).parts().next,
              HasSubstr("\"x\"::text::bigint"));
}

using PostgresJson = PostgresColumn;

TEST_F(PostgresJson, IsTextAsItStands) {
  EXPECT_THAT(texts("json", {"'[1, 2.50]'", "'{\"a\":  1}'"}),
              ElementsAre("[1, 2.50]", "{\"a\":  1}"));
  EXPECT_THAT(texts("text", {"'[1]'", "''"}), ElementsAre("[1]", ""));
  EXPECT_THAT(texts("varchar(9)", {"'[2]'"}), ElementsAre("[2]"));
  EXPECT_THAT(texts("char(9)", {"'[3]'"}), ElementsAre("[3]"));
}

TEST_F(PostgresJson, OfJsonbIsWhatTheServerMadeOfIt) {
  EXPECT_THAT(texts("jsonb", {"'[1,  -0.0, 2.50]'", "'[\"K\xc3\xb6ln\"]'"}),
              ElementsAre("[1, 0.0, 2.50]", "[\"K\xc3\xb6ln\"]"));
}

TEST_F(PostgresJson, IsNullWhereTheColumnIs) {
  for (const char* type : {"json", "jsonb", "text"}) {
    make(type, {"NULL"});
    Block block = read(ReadAs::json);
    EXPECT_FALSE(block.columns[0].valid(0));
    EXPECT_TRUE(block.problems.empty());
  }
}

TEST_F(PostgresJson, IsNoNumber) {
  Error error = refusal("int8", ReadAs::json);
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_THAT(error.what(),
              HasSubstr("its type is bigint, expected json, jsonb "
                        "or text"));
}

TEST_F(PostgresJson, IsMadeOfOtherTypesByTheCastThatIsNamed) {
  schema_.execute("CREATE TYPE band AS ENUM ('uhf', 'vhf')");
  for (auto [declared, value, text] :
       std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {"band", "'vhf'", "\"vhf\""},
           {"int4[]", "'{1,2}'", "[1,2]"},
           {"int8", "5", "5"},
           {"date", "'2026-01-01'", "\"2026-01-01\""},
           {"bytea", "'ab'", "\"\\\\x6162\""}}) {
    Block block = read_as_told(declared, value, ReadAs::json);
    ASSERT_EQ(block.rows, 1) << declared;
    EXPECT_EQ(block.columns[0].text(0), text) << declared;
  }
}

using PostgresValue = PostgresColumn;

TEST_F(PostgresValue, HasTheTypeOfItsColumn) {
  auto type_of = [&](const char* declared) {
    make(declared, {});
    return open_source(schema_.spec(), {{"x", ReadAs::value}})->types()[0];
  };
  for (const char* type : {"int2", "int4", "int8"})
    EXPECT_EQ(type_of(type), ColumnType::int64);
  for (const char* type : {"float4", "float8"})
    EXPECT_EQ(type_of(type), ColumnType::float64);
  EXPECT_EQ(type_of("bool"), ColumnType::boolean);
  EXPECT_EQ(type_of("uuid"), ColumnType::uuid);
  for (const char* type : {"text", "json", "jsonb", "numeric", "date",
                           "timestamptz", "text[]", "time"})
    EXPECT_EQ(type_of(type), ColumnType::text) << type;
  EXPECT_EQ(type_of("interval"), ColumnType::float64);
  EXPECT_EQ(type_of("bytea"), ColumnType::binary);
  EXPECT_EQ(type_of("int4[]"), ColumnType::list);
}

TEST_F(PostgresValue, OfANumericIsItsShortestDecimal) {
  EXPECT_THAT(
      texts("numeric", {"5.00", "0.10", "-2.5", "'NaN'"}, ReadAs::value),
      ElementsAre("5", "0.1", "-2.5", "NaN"));
}

TEST_F(PostgresValue, OfATimeIsIso8601) {
  EXPECT_THAT(
      texts("timestamptz", {"'2026-01-01 01:00:41.5+01'"}, ReadAs::value),
      ElementsAre("2026-01-01T00:00:41.500Z"));
  EXPECT_THAT(texts("date", {"'2026-01-01'", "'infinity'"}, ReadAs::value),
              ElementsAre("2026-01-01", "infinity"));
}

TEST_F(PostgresValue, OfAnyOtherTypeIsItsText) {
  schema_.execute("CREATE TYPE band AS ENUM ('uhf', 'vhf')");
  EXPECT_THAT(texts("band", {"'vhf'"}, ReadAs::value), ElementsAre("vhf"));
  EXPECT_THAT(texts("text[]", {"'{a,b}'"}, ReadAs::value),
              ElementsAre("{a,b}"));
  EXPECT_THAT(texts("text", {"'a'"}, ReadAs::value), ElementsAre("a"));
}

TEST_F(PostgresValue, OfBytesIsTheBytes) {
  EXPECT_THAT(texts("bytea", {"'\\x00ff41'", "''"}, ReadAs::value),
              ElementsAre(std::string("\0\xff"
                                      "A",
                                      3),
                          ""));
}

TEST_F(PostgresValue, ThatIsHashedIsTextInEveryTypeThatIsNoNumber) {
  for (auto [declared, value, text] :
       std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {"bytea", "'ab'", "\\x6162"},
           {"interval", "'1 day 02:00'", "1 day 02:00:00"}}) {
    make(declared, {value});
    Block block = scan_all(
        *open_source(schema_.spec(),
                     {{.column = "x", .as = ReadAs::value, .hashed = true}}));
    EXPECT_EQ(block.columns[0].text(0), text);
  }
}

TEST_F(PostgresValue, MayBeNullInEveryType) {
  for (const char* type : {"int4", "float8", "text", "uuid", "bool", "date",
                           "bytea", "interval", "real[]"}) {
    make(type, {"NULL"});
    EXPECT_FALSE(read(ReadAs::value).columns[0].valid(0)) << type;
  }
}

class PostgresKey : public testing::Test {
 protected:
  ScannedBlock scan(const std::string& declared, const std::string& values) {
    schema_.execute("DROP TABLE IF EXISTS t; CREATE TABLE t(k " + declared +
                    ")");
    if (!values.empty()) schema_.execute("INSERT INTO t VALUES " + values);
    SourceSpec spec = schema_.spec();
    spec.key = {"k"};
    return scan_all(*open_source(spec, {}));
  }
  TestSchema schema_;
};

TEST_F(PostgresKey, IsAnIntegerATextOrAUuid) {
  EXPECT_EQ(scan("int2", "(7)").keys.integer(0), 7);
  EXPECT_EQ(scan("int8", "(-7)").keys.integer(0), -7);
  EXPECT_EQ(scan("varchar", "('a')").keys.bytes(0), "a");
  EXPECT_EQ(scan("char(5)", "('ab')").keys.bytes(0), "ab");
  ScannedBlock block = scan("uuid", "('00112233-4455-6677-8899-aabbccddeeff')");
  EXPECT_EQ(block.keys.shown(0), "'00112233-4455-6677-8899-aabbccddeeff'");
}

TEST_F(PostgresKey, IsNothingElse) {
  Error error = error_of([&] { scan("numeric", ""); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.key_type");
  EXPECT_THAT(error.parts().next, HasSubstr("\"k\"::bigint AS \"k\""));
  EXPECT_THAT(error_of([&] { scan("timestamptz", ""); }).parts().next,
              HasSubstr("\"k\"::text AS \"k\""));
}

TEST_F(PostgresKey, ThatIsNullNamesItsRow) {
  Error error = error_of([&] { scan("int", "(1), (NULL), (3)"); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "source.bad_key");
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("key 'k'"), HasSubstr("row number 2 of all rows"),
                    HasSubstr("NULL")));
  EXPECT_THAT(error.parts().next, HasSubstr("\"k\" IS NOT NULL"));
}

TEST_F(PostgresKey, MayAlsoBeWantedAsAColumn) {
  schema_.execute(
      "CREATE TABLE t(k int PRIMARY KEY, name text); INSERT INTO t "
      "VALUES (4, 'four')");
  ScannedBlock block = scan_all(*open_source(
      schema_.spec(), {{"k", ReadAs::number}, {"name", ReadAs::value}}));
  EXPECT_EQ(block.keys.integer(0), 4);
  EXPECT_EQ(block.columns[0].as_float64(0), 4.0);
  EXPECT_EQ(block.columns[1].text(0), "four");
}

}  // namespace
}  // namespace penstock
