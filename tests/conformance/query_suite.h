#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/test_reading.h"

/// What every database does with a query in place of a table. A new one joins
/// as in database_suite.h, with QuerySuite; its `query(sql)` gives the spec.
namespace penstock {

template <class Database>
class QuerySuite : public testing::Test {
 protected:
  void SetUp() override {
    if (this->IsSkipped()) return;
    database_.execute(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, kind VARCHAR(9), x DOUBLE "
        "PRECISION, doc JSON); INSERT INTO t VALUES (1, 'a', 1.5, "
        "'{\"v\": 10}'), (2, 'b', 2.5, '{\"v\": 20}'), (3, 'a', 3.5, "
        "'{\"v\": 30}'), (4, NULL, 1.5, NULL)");
  }
  std::unique_ptr<Source> open(const std::string& sql,
                               const std::vector<std::string>& key = {},
                               const std::string& column = "x") {
    SourceSpec spec = database_.query(sql);
    spec.key = key;
    return open_source(spec, {{column, ReadAs::number}});
  }
  Error refusal(const std::string& sql,
                const std::vector<std::string>& key = {"id"}) {
    return error_of([&] { scan_all(*open(sql, key)); });
  }
  static std::vector<double> numbers(const Block& block) {
    std::vector<double> all;
    for (std::int64_t row = 0; row < block.rows; ++row)
      all.push_back(block.columns[0].as_float64(row));
    return all;
  }
  std::int64_t rows_of_t() {
    SourceSpec spec = database_.spec();
    return scan_all(*open_source(spec, {})).rows;
  }

  Database database_;
};
TYPED_TEST_SUITE_P(QuerySuite);

TYPED_TEST_P(QuerySuite, IsReadAsATable) {
  auto source = this->open(
      "SELECT id + 100 AS n, 2 * x AS x FROM t WHERE x < 3 -- metres", {"n"});
  EXPECT_TRUE(source->abilities().by_key);
  EXPECT_THAT(source->shown(), testing::StartsWith("query in "));
  EXPECT_EQ(source->count().rows, std::nullopt) << "counting would run it";
  ScannedBlock rows = scan_all(*source);
  EXPECT_EQ(rows.rows, 3);
  Block block;
  source->open_reader()->read(integer_keys({104, 102}), block);
  EXPECT_THAT(this->numbers(block), testing::ElementsAre(3.0, 5.0));
  Error error = error_of(
      [&] { source->open_reader()->read(integer_keys({103}), block); });
  EXPECT_EQ(error.parts().code, "source.row_gone");
  EXPECT_THAT(error.what(), testing::HasSubstr("of the query"));
}

TYPED_TEST_P(QuerySuite, MayHaveExpressionsAsColumns) {
  for (const std::string sql :
       {"SELECT id, CAST(doc ->> 'v' AS DOUBLE PRECISION) AS x FROM t WHERE "
        "doc IS NOT NULL",
        "WITH d AS (SELECT id, doc ->> 'v' AS v FROM t) SELECT id, CAST(v AS "
        "DOUBLE PRECISION) AS x FROM d WHERE v <> '' ;"}) {
    ScannedBlock rows = scan_all(*this->open(sql, {"id"}));
    EXPECT_THAT(this->numbers(rows), testing::UnorderedElementsAre(10, 20, 30))
        << sql;
  }
  ScannedBlock rows = scan_all(
      *this->open("VALUES (1, 5.5), (2, 6.5)", {"column1"}, "column2"));
  EXPECT_THAT(this->numbers(rows), testing::UnorderedElementsAre(5.5, 6.5));
}

TYPED_TEST_P(QuerySuite, MayHaveAKeyOfSeveralColumns) {
  auto source = this->open("SELECT kind, id, x FROM t WHERE kind IS NOT NULL",
                           {"kind", "id"});
  Block block;
  source->open_reader()->read(text_keys({"b\tA2", "a\tA3"}), block);
  EXPECT_THAT(this->numbers(block), testing::ElementsAre(2.5, 3.5));
}

TYPED_TEST_P(QuerySuite, NumbersItsRowsAsItsOrderByFixesThem) {
  auto source =
      this->open("SELECT id, x FROM t WHERE id < 9 ORDER BY x DESC, 1 LIMIT 3");
  EXPECT_EQ(source->facts().key, ColumnType::int64);
  ScannedBlock rows = scan_all(*source);
  std::vector<double> by_number(3);
  ASSERT_EQ(rows.rows, 3);
  for (std::int64_t row = 0; row < 3; ++row)
    by_number.at(static_cast<std::size_t>(rows.keys.integer(row))) =
        rows.columns[0].as_float64(row);
  EXPECT_THAT(by_number, testing::ElementsAre(3.5, 2.5, 1.5));
  Block block;
  source->open_reader()->read(integer_keys({2, 0}), block);
  EXPECT_THAT(this->numbers(block), testing::ElementsAre(1.5, 3.5));
}

TYPED_TEST_P(QuerySuite, IsNotNumberedWhereItsOrderIsNotFixed) {
  Error none = this->refusal("SELECT * FROM t", {});
  EXPECT_EQ(none.kind(), ErrorKind::request);
  EXPECT_EQ(none.parts().code, "source.query_order");
  EXPECT_EQ(this->refusal("SELECT * FROM t ORDER BY -id", {}).parts().code,
            "source.query_order");
  Error ties = this->refusal("SELECT id, x FROM t ORDER BY x", {});
  EXPECT_EQ(ties.kind(), ErrorKind::source);
  EXPECT_EQ(ties.parts().code, "source.query_ties");
  EXPECT_THAT(ties.parts().next, testing::HasSubstr("unique column"));
}

TYPED_TEST_P(QuerySuite, NeedsNoKeyToBeScanned) {
  SourceSpec spec = this->database_.query("SELECT x FROM t");
  auto source = open_source(spec, {{"x", ReadAs::value}}, {.keys = false});
  EXPECT_EQ(scan_all(*source).rows, 4);
  EXPECT_EQ(read_schema(spec).columns.size(), 1u);
}

TYPED_TEST_P(QuerySuite, ThatWritesIsRefused) {
  for (const std::string sql :
       {"DELETE FROM t", "INSERT INTO t(id) VALUES (9) RETURNING id, x",
        "UPDATE t SET x = 0 RETURNING id, x"}) {
    Error error = this->refusal(sql);
    EXPECT_EQ(error.kind(), ErrorKind::request) << sql;
    EXPECT_EQ(error.parts().code, "source.query_writes") << sql;
    EXPECT_EQ(error.parts().where, "source.query") << sql;
    EXPECT_FALSE(error.parts().next.empty()) << sql;
  }
  EXPECT_EQ(this->rows_of_t(), 4);
}

TYPED_TEST_P(QuerySuite, IsOneStatementThatReturnsRows) {
  for (const std::string sql :
       {"SELECT id, x FROM t; SELECT 1", "SELECT id, x FROM t; DROP TABLE t",
        "SELEC id, x FROM t", "SELECT id, x FROM missing", "", ";", "-- x",
        "SELECT id, x FROM t) AS a, (SELECT 1", "SELECT 1) UNION (SELECT 2",
        "EXPLAIN SELECT id, x FROM t", "BEGIN",
        "SELECT id, x FROM t WHERE x > $1"}) {
    if (sql.empty()) continue;  // no query
    Error error = this->refusal(sql);
    EXPECT_EQ(error.kind(), ErrorKind::request) << sql;
    EXPECT_EQ(error.parts().code, "source.query") << sql;
    EXPECT_EQ(error.parts().where, "source.query") << sql;
  }
  EXPECT_EQ(this->rows_of_t(), 4);
}

TYPED_TEST_P(QuerySuite, NamesTheNearestColumnOfItsResult) {
  Error error = this->refusal("SELECT id, x AS y FROM t");
  EXPECT_EQ(error.parts().code, "source.unknown_column");
  EXPECT_THAT(error.what(), testing::HasSubstr("query in "));
}

TYPED_TEST_P(QuerySuite, IsPartOfWhatASourceIs) {
  const std::string sql = "SELECT id, x FROM t";
  auto identity = [&](const std::string& of) {
    return this->open(of, {"id"})->identity();
  };
  EXPECT_EQ(*identity(sql).find("query"), Json(sql));
  EXPECT_EQ(identity(sql).find("table"), nullptr);
  EXPECT_EQ(identity(sql), identity(sql));
  EXPECT_NE(identity(sql), identity(sql + " WHERE x > 2"));
}

REGISTER_TYPED_TEST_SUITE_P(
    QuerySuite, IsReadAsATable, MayHaveExpressionsAsColumns,
    MayHaveAKeyOfSeveralColumns, NumbersItsRowsAsItsOrderByFixesThem,
    IsNotNumberedWhereItsOrderIsNotFixed, NeedsNoKeyToBeScanned,
    ThatWritesIsRefused, IsOneStatementThatReturnsRows,
    NamesTheNearestColumnOfItsResult, IsPartOfWhatASourceIs);

}  // namespace penstock
