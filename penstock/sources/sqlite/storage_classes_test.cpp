#include <gmock/gmock.h>

#include "penstock/sources/sqlite/test_database.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

/// "price decimal(10,2) number", by column.
std::vector<std::string> columns_of(const SourceSpec& spec) {
  std::vector<std::string> all;
  for (const ColumnInfo& column : read_schema(spec).columns)
    all.push_back(column.name + " " + column.declared +
                  (column.as == ReadAs::number    ? " number"
                   : column.as == ReadAs::integer ? " integer"
                                                  : " value"));
  return all;
}

TEST(SqliteStorageClasses, MakeANumberOfADecimal) {
  TestDatabase database(
      "CREATE TABLE t(price DECIMAL(10,2), whole NUMERIC, none NUMERIC, sold "
      "BOOLEAN, seen DATETIME, doc JSON); INSERT INTO t VALUES (0.35, 2, NULL, "
      "1, 0, '{}'), (NULL, 3, NULL, 0, 1, NULL)");
  EXPECT_THAT(columns_of(database.spec()),
              ElementsAre("price DECIMAL(10,2) number", "whole NUMERIC number",
                          "none NUMERIC value", "sold BOOLEAN value",
                          "seen DATETIME value", "doc JSON value"));
}

TEST(SqliteStorageClasses, LeaveADecimalAloneThatHoldsATextOrBytes) {
  TestDatabase database(
      "CREATE TABLE t(a DECIMAL, b DECIMAL, c DECIMAL); INSERT INTO t VALUES "
      "(1, 1, 1), (2.5, 'n/a', x'00')");
  EXPECT_THAT(
      columns_of(database.spec()),
      ElementsAre("a DECIMAL number", "b DECIMAL value", "c DECIMAL value"));
  SourceSpec numbers = database.spec();
  numbers.where = "typeof(b) <> 'text' -- of a job";
  EXPECT_THAT(
      columns_of(numbers),
      ElementsAre("a DECIMAL number", "b DECIMAL number", "c DECIMAL number"));
}

TEST(SqliteStorageClasses, SayWhatExpressionsOfAQueryAre) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, price DECIMAL(10,2), kind TEXT); "
      "INSERT INTO t VALUES (1, 0.5, 'a'), (2, 0.75, 'b'), (3, NULL, 'c')");
  EXPECT_THAT(
      columns_of(database.query(
          "SELECT id, price * 2 AS v, kind || 'x' AS k, id % 2 AS odd, price > "
          "0.6 AS dear, NULL AS none, CASE id WHEN 1 THEN 'one' ELSE id END AS "
          "mixed, x'00' AS bytes, price FROM t ORDER BY id")),
      ElementsAre("id INTEGER value", "v real number", "k text value",
                  "odd integer integer", "dear integer integer", "none  value",
                  "mixed  value", "bytes  value",
                  "price DECIMAL(10,2) number"));
}

TEST(SqliteStorageClasses, SayWhatColumnsOfNoDeclarationAre) {
  TestDatabase database(
      "CREATE TABLE t(n, x, word); INSERT INTO t VALUES (1, 1, 'a'), (2, 2.5, "
      "'b')");
  EXPECT_THAT(
      columns_of(database.spec()),
      ElementsAre("n integer integer", "x real number", "word text value"));
}

TEST(SqliteStorageClasses, AreThoseOfTheFirstRows) {
  TestDatabase database(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x DECIMAL); WITH RECURSIVE n(i) "
      "AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO "
      "t SELECT i, iif(i = 5000, 'n/a', i) FROM n");
  EXPECT_THAT(columns_of(database.spec()),
              ElementsAre("id INTEGER value", "x DECIMAL number"));
  auto source = open_source(database.spec(), {{"x", ReadAs::number}});
  EXPECT_THAT(scan_all(*source).problems,
              testing::Contains(testing::Field(
                  &RowProblem::why, testing::HasSubstr("text 'n/a'"))));
}

TEST(SqliteStorageClasses, ChangeNothingOfWhatAFieldAsksFor) {
  TestDatabase database(
      "CREATE TABLE t(x DECIMAL); INSERT INTO t VALUES (0.5)");
  EXPECT_THAT(open_source(database.spec(), {{"x", ReadAs::value}})->types(),
              ElementsAre(ColumnType::text));
}

TEST(SqliteStorageClasses, OfAConditionThatIsNoneAreRefusedWithItsSetting) {
  TestDatabase database("CREATE TABLE t(x DECIMAL)");
  SourceSpec spec = database.spec("");
  spec.where = "y > 1";
  const Error error = error_of([&] { read_schema(spec); });
  EXPECT_EQ(error.parts().code, "source.where");
  EXPECT_THAT(error.what(), testing::HasSubstr("table 't'"));
}

}  // namespace
}  // namespace penstock
