#include <gmock/gmock.h>

#include <cmath>

#include "penstock/sources/sqlite/test_database.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A table (id, x) whose x is declared so and holds these SQL literals.
class Column {
 public:
  Column(const std::string& declared, const std::vector<std::string>& values,
         const std::string& first = "")
      : database_(first + "CREATE TABLE t(id INTEGER PRIMARY KEY, x " +
                  declared + ")") {
    for (const std::string& value : values)
      database_.execute("INSERT INTO t(x) VALUES (" + value + ")");
  }

  Block read(ReadAs as) { return read({.column = "x", .as = as}); }
  Block read(const ColumnRequest& wanted) {
    return scan_all(*open_source(database_.spec(), {wanted}));
  }
  /// What is wrong with the only value, or "nothing".
  std::string problem(ReadAs as) { return problem({.column = "x", .as = as}); }
  std::string problem(const ColumnRequest& wanted) {
    Block block = read(wanted);
    if (block.problems.empty()) return "nothing";
    EXPECT_EQ(block.problems[0].row, 0);
    EXPECT_EQ(block.problems[0].column, 0u);
    EXPECT_FALSE(block.columns[0].valid(0));
    return block.problems[0].why;
  }

 private:
  TestDatabase database_;
};

std::vector<double> numbers(const Block& block) {
  std::span<const double> all = block.columns[0].values.as<double>();
  return {all.begin(), all.end()};
}
std::vector<std::int64_t> integers(const Block& block) {
  std::span<const std::int64_t> all =
      block.columns[0].values.as<std::int64_t>();
  return {all.begin(), all.end()};
}
std::vector<std::string> texts(const Block& block) {
  std::vector<std::string> all;
  for (std::int64_t row = 0; row < block.rows; ++row)
    all.emplace_back(block.columns[0].text(row));
  return all;
}

TEST(SqliteNumber, IsAnIntegerOrARealNumber) {
  Block block = Column("", {"7", "-2.5", "1e300", "NULL"}).read(ReadAs::number);
  EXPECT_TRUE(block.problems.empty());
  EXPECT_THAT(numbers(block), testing::ElementsAre(7, -2.5, 1e300, 0));
  EXPECT_FALSE(block.columns[0].valid(3));
}

TEST(SqliteNumber, IsTheSecondsOfAnIsoTime) {
  Block block = Column("TEXT", {"'2023-11-14T22:13:20Z'",
                                "'2023-11-14 22:13:20.250'", "'2023-11-15'"})
                    .read(ReadAs::number);
  EXPECT_TRUE(block.problems.empty());
  EXPECT_THAT(numbers(block),
              testing::ElementsAre(1700000000, 1700000000.25, 1700006400));
}

TEST(SqliteNumber, IsATimeWhereTheColumnDoesNotDeclareNumbers) {
  for (const char* declared : {"", "BLOB", "VARCHAR(30)", "DATETIME", "date"})
    EXPECT_EQ(Column(declared, {"'2023-11-15'"}).problem(ReadAs::number),
              "nothing")
        << declared;
  for (const char* declared : {"REAL", "INTEGER", "NUMERIC", "STRING"})
    EXPECT_EQ(Column(declared, {"'2023-11-15'"}).problem(ReadAs::number),
              "holds text '2023-11-15' where a number (times belong in a "
              "column declared TEXT, DATE or TIME) is expected")
        << declared;
  EXPECT_EQ(Column("REAL", {"'abc'"}).problem(ReadAs::number),
            "holds text 'abc' where a number is expected");
}

TEST(SqliteNumber, IsNoTimeThatWouldBeRounded) {
  ColumnRequest rounded{.column = "x", .rounded = true};
  for (const char* declared : {"", "BLOB"})
    EXPECT_EQ(Column(declared, {"'2023-11-15'"}).problem(rounded),
              "holds text '2023-11-15' where a number (a time needs "
              "\"dtype\": \"float64\" or \"standardize\": true) is "
              "expected");
  EXPECT_EQ(Column("", {"5.5"}).problem(rounded), "nothing");
  EXPECT_EQ(Column("", {"'abc'"}).problem(rounded),
            "holds text 'abc' where a number is expected");
}

TEST(SqliteNumber, IsNoOtherText) {
  EXPECT_EQ(Column("", {"'abc'"}).problem(ReadAs::number),
            "holds text 'abc' where a number or an ISO-8601 time is expected");
  EXPECT_THAT(Column("", {"'2023-02-30'"}).problem(ReadAs::number),
              HasSubstr("'2023-02-30'"));
  EXPECT_THAT(Column("", {"''"}).problem(ReadAs::number), HasSubstr("text ''"));
}

TEST(SqliteNumber, IsShownWithoutCuttingACharacter) {
  std::string text;
  for (int i = 0; i < 39; ++i) text += 'x';
  EXPECT_THAT(Column("", {"'" + text + "\xc3\xa4zzz'"}).problem(ReadAs::number),
              HasSubstr("'" + text + "...'"));
}

TEST(SqliteNumber, IsShownByItsBytesWhereItIsNoUtf8) {
  for (const char* bytes : {"ff0041", "80", "c0af", "e08080", "eda080",
                            "f4908080", "c3", "e282", "f09f98", "61e4"})
    EXPECT_EQ(Column("", {"cast(x'" + std::string(bytes) + "' AS TEXT)"})
                  .problem(ReadAs::number),
              "holds text x'" + std::string(bytes) +
                  "', which is not UTF-8 where a number or an ISO-8601 time is "
                  "expected");
  EXPECT_THAT(Column("", {"'\xc3\xa4\xe6\x9d\xb1\xf0\x9f\x98\x80'"})
                  .problem(ReadAs::number),
              HasSubstr("text '\xc3\xa4\xe6\x9d\xb1\xf0\x9f\x98\x80'"));
  EXPECT_THAT(Column("", {"cast(zeroblob(30) || x'ff' AS TEXT)"})
                  .problem(ReadAs::number),
              HasSubstr("00...'"));
}

TEST(SqliteNumber, IsNoBlob) {
  EXPECT_THAT(Column("", {"x'0102'"}).problem(ReadAs::number),
              HasSubstr("a BLOB of 2 bytes"));
}

TEST(SqliteNumber, MayBeAnInfinity) {
  Block block = Column("REAL", {"9e999", "-9e999"}).read(ReadAs::number);
  EXPECT_TRUE(block.problems.empty());
  EXPECT_EQ(block.columns[0].float64(0), HUGE_VAL);
  EXPECT_EQ(block.columns[0].float64(1), -HUGE_VAL);
}

TEST(SqliteNumber, IsZeroOrOneInABooleanColumn) {
  EXPECT_THAT(
      numbers(Column("BOOLEAN", {"0", "1", "TRUE"}).read(ReadAs::number)),
      testing::ElementsAre(0, 1, 1));
  for (const char* other : {"2", "0.5", "'true'", "'2023-11-15'"})
    EXPECT_THAT(Column("BOOL", {other}).problem(ReadAs::number),
                HasSubstr("a boolean (0 or 1)"));
}

TEST(SqliteInteger, KeepsItsBits) {
  EXPECT_THAT(integers(Column("", {"9007199254740993", "-9223372036854775808",
                                   "9223372036854775807"})
                           .read(ReadAs::integer)),
              testing::ElementsAre(9007199254740993, INT64_MIN, INT64_MAX));
}

TEST(SqliteInteger, MayBeARealNumberWithoutAFraction) {
  EXPECT_THAT(integers(Column("REAL", {"3", "-4.0"}).read(ReadAs::integer)),
              testing::ElementsAre(3, -4));
}

TEST(SqliteInteger, HasNoFractionAndFits) {
  EXPECT_EQ(Column("REAL", {"2.5"}).problem(ReadAs::integer),
            "holds 2.5 where an integer of 64 bits is expected");
  for (const char* other : {"1e19", "9223372036854775808", "9e999", "-1e19"})
    EXPECT_THAT(Column("REAL", {other}).problem(ReadAs::integer),
                HasSubstr("an integer of 64 bits"))
        << other;
}

TEST(SqliteInteger, IsNoTextAndNoBlob) {
  for (const char* other : {"'5x'", "'2023-11-15'", "x'00'"})
    EXPECT_THAT(Column("", {other}).problem(ReadAs::integer),
                HasSubstr("an integer of 64 bits"));
}

TEST(SqliteInteger, IsZeroOrOneInABooleanColumn) {
  EXPECT_THAT(Column("BOOL", {"3"}).problem(ReadAs::integer),
              HasSubstr("a boolean (0 or 1)"));
  EXPECT_EQ(Column("BOOL", {"1"}).problem(ReadAs::integer), "nothing");
}

TEST(SqliteInteger, MayBeNull) {
  EXPECT_FALSE(Column("", {"NULL"}).read(ReadAs::integer).columns[0].valid(0));
}

TEST(SqliteJson, IsTextOrABlobAsItStands) {
  EXPECT_THAT(
      texts(Column("", {"'[1, 2]'", "x'5b5d'", "''"}).read(ReadAs::json)),
      testing::ElementsAre("[1, 2]", "[]", ""));
}

TEST(SqliteJson, MayHoldAZeroByte) {
  std::string text =
      texts(Column("", {"'[' || char(0) || ']'"}).read(ReadAs::json))[0];
  EXPECT_EQ(text, std::string("[\0]", 3));
}

TEST(SqliteJson, IsNullWhereTheColumnIs) {
  Block block = Column("", {"NULL"}).read(ReadAs::json);
  EXPECT_FALSE(block.columns[0].valid(0));
  EXPECT_TRUE(block.problems.empty());
}

TEST(SqliteJson, IsNoNumber) {
  EXPECT_EQ(Column("", {"5"}).problem(ReadAs::json),
            "holds 5 where JSON as text is expected");
  EXPECT_THAT(Column("", {"2.5"}).problem(ReadAs::json), HasSubstr("2.5"));
}

TEST(SqliteText, OfADatabaseInUtf16IsConverted) {
  Column column("", {"'[\"K\xc3\xb6ln\"]'", "x'5b5d'"},
                "PRAGMA encoding = 'UTF-16le'; ");
  EXPECT_THAT(texts(column.read(ReadAs::json)),
              testing::ElementsAre("[\"K\xc3\xb6ln\"]", "[]"));
}

TEST(SqliteValue, HasTheTypeOfTheDeclaration) {
  EXPECT_THAT(integers(Column("BIGINT", {"5"}).read(ReadAs::value)),
              testing::ElementsAre(5));
  EXPECT_THAT(integers(Column("BOOLEAN", {"1"}).read(ReadAs::value)),
              testing::ElementsAre(1));
  EXPECT_THAT(numbers(Column("DOUBLE", {"5"}).read(ReadAs::value)),
              testing::ElementsAre(5.0));
  EXPECT_THAT(texts(Column("VARCHAR(9)", {"'uhf'"}).read(ReadAs::value)),
              testing::ElementsAre("uhf"));
}

TEST(SqliteValue, IsTextWhereTheDeclarationLeavesItOpen) {
  EXPECT_THAT(
      texts(
          Column("", {"5", "-2.5", "0.1", "'a'", "x'62'"}).read(ReadAs::value)),
      testing::ElementsAre("5", "-2.5", "0.1", "a", "b"));
  EXPECT_THAT(texts(Column("DECIMAL(5)", {"5"}).read(ReadAs::value)),
              testing::ElementsAre("5"));
}

TEST(SqliteValue, IsOneTextForEqualNumbers) {
  EXPECT_THAT(texts(Column("", {"1e15", "1000000000000000", "-3.0", "-0.0",
                                "1e19", "9007199254740993"})
                        .read(ReadAs::value)),
              testing::ElementsAre("1000000000000000", "1000000000000000", "-3",
                                   "0", "1e+19", "9007199254740993"));
}

TEST(SqliteValue, ThatIsHashedMayBeOfAnyType) {
  ColumnRequest by{.column = "x", .as = ReadAs::value, .hashed = true};
  std::vector<std::string> all = {"'x'", "2.5", "x'78'", "1e19", "7",
                                  "7.0", "'y'", "NULL",  "9e999"};
  for (const char* declared : {"INTEGER", "REAL", "BOOLEAN", "TEXT", ""}) {
    Block block = Column(declared, all).read(by);
    ASSERT_EQ(block.rows, 9) << declared;
    EXPECT_TRUE(block.problems.empty()) << declared;
    const penstock::Column& column = block.columns[0];
    bool text = declared == std::string("TEXT");  // where 7.0 is '7.0'
    auto same = [&](std::int64_t a, std::int64_t b) {
      if (column.type == ColumnType::int64)
        return column.int64(a) == column.int64(b);
      if (column.type == ColumnType::float64)
        return column.float64(a) == column.float64(b);
      return column.text(a) == column.text(b);
    };
    for (std::int64_t a = 0; a < 9; ++a) {
      EXPECT_EQ(column.valid(a), a != 7) << declared;
      for (std::int64_t b = a + 1; b < 9; ++b)
        EXPECT_EQ(same(a, b), (a == 0 && b == 2) || (a == 4 && b == 5 && !text))
            << declared << " " << all[static_cast<std::size_t>(a)] << " "
            << all[static_cast<std::size_t>(b)];
    }
  }
  EXPECT_THAT(integers(Column("BOOLEAN", {"2", "1"}).read(by)),
              testing::ElementsAre(2, 1));
  EXPECT_THAT(numbers(Column("REAL", {"2", "2.5"}).read(by)),
              testing::ElementsAre(2, 2.5));
}

TEST(SqliteValue, MayBeNullInEveryType) {
  for (const char* declared : {"INT", "REAL", "TEXT", ""})
    EXPECT_FALSE(
        Column(declared, {"NULL"}).read(ReadAs::value).columns[0].valid(0));
}

TEST(SqliteValue, IsBytesWhereABlobIsDeclared) {
  Block block =
      Column("BLOB", {"x'00ff41'", "'text'", "NULL"}).read(ReadAs::value);
  EXPECT_EQ(block.columns[0].type, ColumnType::binary);
  EXPECT_EQ(block.columns[0].text(0), std::string_view("\0\xff"
                                                       "A",
                                                       3));
  EXPECT_EQ(block.columns[0].text(1), "text");
  EXPECT_FALSE(block.columns[0].valid(2));
  EXPECT_THAT(Column("BLOB", {"5"}).problem(ReadAs::value),
              HasSubstr("holds 5 where a BLOB or a text is expected"));
}

TEST(SqliteValue, OfAnotherTypeIsAProblem) {
  EXPECT_THAT(Column("INT", {"'x'"}).problem(ReadAs::value),
              HasSubstr("an integer"));
  EXPECT_THAT(Column("REAL", {"'x'"}).problem(ReadAs::value),
              HasSubstr("a number"));
}

class SqliteKey : public testing::Test {
 protected:
  ScannedBlock scan(const std::string& sql) {
    database_.execute(sql);
    SourceSpec spec = database_.spec();
    spec.key = {"k"};
    return scan_all(*open_source(spec, {}));
  }
  ColumnType type(const std::string& declared, const std::string& values) {
    return scan("CREATE TABLE t(k " + declared + "); INSERT INTO t VALUES " +
                values)
        .keys.type();
  }
  TestDatabase database_;
};

TEST_F(SqliteKey, IsAnIntegerWhereThatIsDeclared) {
  EXPECT_EQ(type("SMALLINT", "(1)"), ColumnType::int64);
}

TEST_F(SqliteKey, IsATextWhereThatIsDeclared) {
  EXPECT_EQ(type("VARCHAR(20)", "(1)"), ColumnType::text);
}

TEST_F(SqliteKey, IsWhatTheFirstRowSaysElsewhere) {
  EXPECT_EQ(type("", "(1)"), ColumnType::int64);
  database_.execute("DROP TABLE t");
  EXPECT_EQ(type("", "('a')"), ColumnType::text);
  database_.execute("DROP TABLE t");
  EXPECT_EQ(type("DECIMAL(10)", "(12)"), ColumnType::int64);
}

TEST_F(SqliteKey, IsWhatTheFirstRowThatIsReadSays) {
  database_.execute("CREATE TABLE t(k); INSERT INTO t VALUES ('x'), (1), (2)");
  SourceSpec spec = database_.spec();
  spec.key = {"k"};
  spec.where = "typeof(k) = 'integer' -- the new ones";
  ScannedBlock block = scan_all(*open_source(spec, {}));
  EXPECT_EQ(block.keys.type(), ColumnType::int64);
  EXPECT_EQ(block.rows, 2);
  spec.where = "nothing = 1";
  EXPECT_EQ(error_of([&] { open_source(spec, {}); }).parts().code,
            "source.where");
}

TEST_F(SqliteKey, IsUtf8) {
  Error error = error_of([&] {
    scan(
        "CREATE TABLE t(k TEXT); INSERT INTO t VALUES ('\xc3\xa4'), "
        "(cast(x'fe' AS TEXT))");
  });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "source.bad_key");
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("rowid 2"), HasSubstr("holds text x'fe', which "
                                                    "is not UTF-8 where")));
}

TEST_F(SqliteKey, MayBeTextWithAZeroByteOrNone) {
  ScannedBlock block = scan(
      "CREATE TABLE t(k TEXT); INSERT INTO t VALUES ('a' || char(0) || 'b'), "
      "('')");
  EXPECT_EQ(block.keys.bytes(0), std::string_view("a\0b", 3));
  EXPECT_EQ(block.keys.bytes(1), "");
}

TEST_F(SqliteKey, IsNeitherRealNorBlob) {
  for (const char* value : {"2.5", "x'00'"}) {
    Error error = error_of([&] { type("", "(" + std::string(value) + ")"); });
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "source.key_type");
    database_.execute("DROP TABLE t");
  }
}

TEST_F(SqliteKey, ThatIsNullNamesItsRow) {
  Error error = error_of([&] {
    scan("CREATE TABLE t(k INT); INSERT INTO t(rowid, k) VALUES (17, NULL)");
  });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "source.bad_key");
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("rowid 17"), HasSubstr("holds NULL where an "
                                                     "integer is expected")));
}

TEST_F(SqliteKey, OfAnotherTypeNamesItsRow) {
  Error error = error_of([&] {
    scan(
        "CREATE TABLE t(rowid, _ROWID_, k INT); INSERT INTO t(oid, k) VALUES "
        "(1, 1), (5, 'x')");
  });
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("rowid 5"), HasSubstr("holds text 'x'")));
}

TEST_F(SqliteKey, OfAViewNamesTheNumberOfItsRow) {
  Error error = error_of(
      [&] { scan("CREATE VIEW t AS SELECT 'a' AS k UNION ALL SELECT NULL"); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("row number 2"),
                                  HasSubstr("where a text is expected")));
}

TEST_F(SqliteKey, OfATableWithoutRowidIsRead) {
  ScannedBlock block = scan(
      "CREATE TABLE t(k TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES "
      "('b'), ('a')");
  EXPECT_EQ(block.rows, 2);
}

TEST_F(SqliteKey, MayAlsoBeWantedAsAColumn) {
  database_.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, name TEXT)");
  database_.execute("INSERT INTO t VALUES (4, 'four')");
  auto source = open_source(database_.spec(),
                            {{"k", ReadAs::number}, {"name", ReadAs::value}});
  ScannedBlock block = scan_all(*source);
  EXPECT_EQ(block.keys.integer(0), 4);
  EXPECT_EQ(block.columns[0].float64(0), 4.0);
  EXPECT_EQ(block.columns[1].text(0), "four");
}

}  // namespace
}  // namespace penstock
