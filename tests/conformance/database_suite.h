#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/sources/test_reading.h"

/// What every source does that sends SQL, beyond what any source does
/// (source_suite.h). A new one joins with
///
///     INSTANTIATE_TYPED_TEST_SUITE_P(MyDatabase, DatabaseSuite, MyDatabase);
///
/// where MyDatabase is a database of the test's own: `execute(sql)` sends
/// statements to it, `spec()` names its table t.
namespace penstock {

template <class Database>
class DatabaseSuite : public testing::Test {
 protected:
  /// Makes the table of the rows (i, i / 2) for i = 0, 1, ...
  void make_rows(std::int64_t rows) {
    database_.execute(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, x DOUBLE PRECISION); WITH "
        "RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 "
        "< " +
        std::to_string(rows) + ") INSERT INTO t SELECT i, i * 0.5 FROM n");
  }
  std::unique_ptr<Source> open(const std::string& where = "",
                               double round_trip_ms = 0) {
    SourceSpec spec = database_.spec();
    spec.where = where;
    spec.round_trip_ms = round_trip_ms;
    return open_source(spec, {{"x", ReadAs::number}});
  }
  /// A table whose rows are named by two columns, of which neither is unique;
  /// x is 10 * a + the number of b's letter.
  void make_pairs(const std::string& constraint = ", PRIMARY KEY (a, b)") {
    database_.execute(
        "CREATE TABLE t(x DOUBLE PRECISION, b VARCHAR(9), a BIGINT" +
        constraint +
        "); INSERT INTO t VALUES (102, 'B', 10), (21, 'A', 2), (22, 'B', 2), "
        "(101, 'A', 10), (-11, 'A', -1)");
  }
  std::int64_t rows_where(const std::string& where) {
    return scan_all(*open(where)).rows;
  }

  Database database_;
};
TYPED_TEST_SUITE_P(DatabaseSuite);

TYPED_TEST_P(DatabaseSuite, SelectsRowsByWhere) {
  this->make_rows(10);
  EXPECT_EQ(this->rows_where(""), 10);
  EXPECT_EQ(this->rows_where("id = 1 OR id = 3"), 2);
  EXPECT_EQ(this->rows_where("x > 100"), 0);
  EXPECT_EQ(this->rows_where("x >= 2 -- metres"), 6);
}

TYPED_TEST_P(DatabaseSuite, RefusesAWhereThatIsNoSql) {
  this->make_rows(1);
  Error error = error_of([&] { this->open("x >> > 2"); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.where");
  EXPECT_EQ(error.parts().where, "source.where");
  EXPECT_THAT(error.what(), testing::HasSubstr("syntax error"));
  EXPECT_FALSE(error.parts().next.empty());
}

TYPED_TEST_P(DatabaseSuite, RefusesAWhereThatClosesItsParenthesis) {
  this->make_rows(10);
  for (const char* where :
       {"id > 5) OR (id > 2", "id > 5) OR true -- (", "id = 1 LIMIT 1",
        "id > 5) AND (x > 2) OR (x > 1", ") OR (id > 2"}) {
    Error error = error_of([&] { this->open(where); });
    EXPECT_EQ(error.parts().code, "source.where") << where;
    EXPECT_THAT(error.what(), testing::HasSubstr("syntax error")) << where;
  }
  EXPECT_EQ(this->rows_where("(id > 5) OR (id < 2)"), 6);
  EXPECT_EQ(this->rows_where("id IN (1, 2) OR ')' = ' ('"), 2);
}

TYPED_TEST_P(DatabaseSuite, CountsTheRowsOfASmallTable) {
  this->make_rows(10);
  EXPECT_EQ(this->open()->count().rows, 10);
  EXPECT_EQ(this->open("id < 3")->count().rows, 3);
}

TYPED_TEST_P(DatabaseSuite, ReadsTensOfThousandsOfKeysAtOnce) {
  this->make_rows(70000);
  auto source = this->open();
  Block block;
  source->open_reader()->read(integer_keys(0, 70000), block);
  ASSERT_EQ(block.rows, 70000);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    ASSERT_EQ(block.columns[0].float64(row), 0.5 * static_cast<double>(row));
  }
}

TYPED_TEST_P(DatabaseSuite, PaysOneRoundTripForAllKeysOfARead) {
  this->make_rows(1000);
  auto source = this->open("", 40);
  auto reader = source->open_reader();
  Block block;
  reader->read(integer_keys(0, 1), block);  // may have to connect
  Nanoseconds start = wall_clock().now();
  reader->read(integer_keys(0, 500), block);
  double once = seconds(wall_clock().now() - start);
  EXPECT_GE(once, 0.040);
  EXPECT_LT(once, 20 * 0.040);  // 500 of them would take 20 s
  for (int i = 0; i < 3; ++i) reader->read(integer_keys(i, i + 1), block);
  EXPECT_GE(seconds(wall_clock().now() - start), 0.160);
}

TYPED_TEST_P(DatabaseSuite, PaysOneRoundTripForAWholeScan) {
  this->make_rows(1000);
  auto source = this->open("", 40);
  auto parts = source->partitions(1);
  auto reader = source->open_reader();
  Nanoseconds start = wall_clock().now();
  reader->scan(parts[0], {.rows = 10}, [](KeyList&, Block&) { return true; });
  double once = seconds(wall_clock().now() - start);
  EXPECT_GE(once, 0.040);
  EXPECT_LT(once, 20 * 0.040);  // 100 blocks
}

TYPED_TEST_P(DatabaseSuite, SeesRowsThatWereChangedBetweenReads) {
  this->make_rows(10);
  auto source = this->open();
  auto reader = source->open_reader();
  Block block;
  reader->read(integer_keys({3}), block);
  EXPECT_EQ(block.columns[0].float64(0), 1.5);
  this->database_.execute("UPDATE t SET x = -1 WHERE id = 3");
  reader->read(integer_keys({3}), block);
  EXPECT_EQ(block.columns[0].float64(0), -1.0);
}

TYPED_TEST_P(DatabaseSuite, CountsARowThatWhereLeavesOutAsGone) {
  this->make_rows(10);
  auto source = this->open("x < 2 -- metres");
  auto reader = source->open_reader();
  Block block;
  reader->read(integer_keys(0, 4), block);
  EXPECT_EQ(block.rows, 4);
  Error error = error_of([&] { reader->read(integer_keys(3, 6), block); });
  EXPECT_EQ(error.parts().code, "source.row_gone");
  EXPECT_THAT(error.what(), testing::HasSubstr("key 4"));
}

TYPED_TEST_P(DatabaseSuite, RefusesAKeyThatTwoRowsHave) {
  this->database_.execute(
      "CREATE TABLE t(id INTEGER, x DOUBLE PRECISION); INSERT INTO t VALUES "
      "(7, 1), (7, 2)");
  SourceSpec spec = this->database_.spec();
  spec.key = {"id"};
  auto source = open_source(spec, {{"x", ReadAs::number}});
  Block block;
  Error error =
      error_of([&] { source->open_reader()->read(integer_keys({7}), block); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "source.key_twice");
  EXPECT_THAT(error.what(), testing::HasSubstr("key 7"));
}

TYPED_TEST_P(DatabaseSuite, NamesRowsByAllColumnsOfThePrimaryKey) {
  this->make_pairs();
  auto source = open_source(this->database_.spec(), {{"x", ReadAs::number}});
  EXPECT_EQ(source->facts().key, ColumnType::text);
  EXPECT_EQ(source->identity().find("key")->dump(), R"(["a", "b"])");
  ScannedBlock rows = scan_all(*source);
  ASSERT_EQ(rows.keys.size(), 5);
  std::map<std::string, double> by_key;
  for (std::int64_t row = 0; row < rows.rows; ++row)
    by_key[std::string(rows.keys.bytes(row))] = rows.columns[0].float64(row);
  EXPECT_THAT(by_key, testing::ElementsAre(testing::Pair("-Z8\tA", -11),
                                           testing::Pair("A2\tA", 21),
                                           testing::Pair("A2\tB", 22),
                                           testing::Pair("B10\tA", 101),
                                           testing::Pair("B10\tB", 102)));
}

TYPED_TEST_P(DatabaseSuite, ReadsRowsByAllColumnsOfTheirKey) {
  this->make_pairs();
  SourceSpec spec = this->database_.spec();
  for (const char* where : {"", "x < 102 -- metres"}) {
    spec.where = where;
    auto source = open_source(spec, {{"x", ReadAs::number}});
    auto reader = source->open_reader();
    Block block;
    reader->read(text_keys({"B10\tA", "-Z8\tA", "A2\tB", "B10\tA"}), block);
    ASSERT_EQ(block.rows, 4);
    for (auto [row, x] : {std::pair(0, 101), {1, -11}, {2, 22}, {3, 101}})
      EXPECT_EQ(block.columns[0].float64(row), x);
    Error error = error_of([&] {
      reader->read(text_keys({"A2\tA", "A2\tC"}), block);
    });
    EXPECT_EQ(error.parts().code, "source.row_gone");
    EXPECT_THAT(error.what(), testing::HasSubstr("A2\\tC"));
  }
  EXPECT_EQ(error_of([&] {
              Block block;
              open_source(spec, {{"x", ReadAs::number}})
                  ->open_reader()
                  ->read(text_keys({"B10\tB"}), block);
            })
                .parts()
                .code,
            "source.row_gone")
      << "where leaves it out";
}

TYPED_TEST_P(DatabaseSuite, ReadsThousandsOfKeysOfTwoColumnsAtOnce) {
  this->database_.execute(
      "CREATE TABLE t(a INTEGER, b VARCHAR(20), x DOUBLE PRECISION, PRIMARY "
      "KEY (a, b)); WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 "
      "FROM n WHERE i + 1 < 40000) INSERT INTO t SELECT i / 100, 'k' || (i % "
      "100), i FROM n");
  auto source = open_source(this->database_.spec(), {{"x", ReadAs::number}});
  ScannedBlock rows = scan_all(*source);
  ASSERT_EQ(rows.rows, 40000);
  Block again;
  source->open_reader()->read(rows.keys, again);
  ASSERT_EQ(again.rows, rows.rows);
  for (std::int64_t row = 0; row < rows.rows; ++row)
    ASSERT_EQ(again.columns[0].float64(row), rows.columns[0].float64(row));
}

TYPED_TEST_P(DatabaseSuite, TakesColumnsThatAreUniqueTogetherAsTheKey) {
  this->make_pairs("");
  SourceSpec spec = this->database_.spec();
  spec.key = {"b", "a"};
  auto source = open_source(spec, {{"a", ReadAs::integer}});
  Block block;
  source->open_reader()->read(text_keys({"A\tB10"}), block);
  EXPECT_EQ(block.columns[0].int64(0), 10);
  this->database_.execute("INSERT INTO t VALUES (0, 'A', 10)");
  Error error = error_of(
      [&] { source->open_reader()->read(text_keys({"A\tB10"}), block); });
  EXPECT_EQ(error.parts().code, "source.key_twice");
  this->database_.execute("INSERT INTO t VALUES (0, NULL, 10)");
  error = error_of([&] { scan_all(*source); });
  EXPECT_EQ(error.parts().code, "source.bad_key");
  EXPECT_THAT(error.what(), testing::HasSubstr("key 'b'"));
  spec.key = {"b", "aa"};
  error = error_of([&] { open_source(spec, {}); });
  EXPECT_EQ(error.parts().code, "source.unknown_column");
  EXPECT_EQ(error.parts().where, "source.key");
}

TYPED_TEST_P(DatabaseSuite, NumbersTheRowsOfATableWithoutAKey) {
  this->make_pairs("");
  auto source = open_source(this->database_.spec(), {{"x", ReadAs::number}});
  EXPECT_EQ(source->facts().key, ColumnType::int64);
  ScannedBlock rows = scan_all(*source);
  ASSERT_EQ(rows.keys.size(), 5);
  KeyList backwards;
  for (std::int64_t row = rows.rows; row-- > 0;)
    backwards.append_integer(rows.keys.integer(row));
  auto reader = source->open_reader();
  Block again;
  reader->read(backwards, again);
  for (std::int64_t row = 0; row < rows.rows; ++row)
    EXPECT_EQ(again.columns[0].float64(rows.rows - 1 - row),
              rows.columns[0].float64(row));
  this->database_.execute("DELETE FROM t WHERE x = 22");
  Error error = error_of([&] { reader->read(backwards, again); });
  EXPECT_EQ(error.parts().code, "source.row_gone");
}

TYPED_TEST_P(DatabaseSuite, HasNoKeyForAView) {
  this->make_pairs();
  this->database_.execute("CREATE VIEW v AS SELECT * FROM t");
  SourceSpec spec = this->database_.spec("v");
  Error error = error_of([&] { open_source(spec, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.no_key");
  EXPECT_EQ(error.parts().where, "source.key");
  EXPECT_THAT(error.parts().why, testing::HasSubstr("view has no primary key"));
  spec.key = {"a", "b"};
  EXPECT_EQ(scan_all(*open_source(spec, {})).keys.size(), 5);
}

TYPED_TEST_P(DatabaseSuite, LetsReadersAndPartitionsOutliveTheSource) {
  this->make_rows(3);
  auto source = this->open();
  auto parts = source->partitions(1);
  auto reader = source->open_reader();
  source.reset();
  std::int64_t rows = 0;
  reader->scan(parts[0], {.rows = 10}, [&](KeyList&, Block& block) {
    rows += block.rows;
    return true;
  });
  EXPECT_EQ(rows, 3);
}

REGISTER_TYPED_TEST_SUITE_P(
    DatabaseSuite, SelectsRowsByWhere, RefusesAWhereThatIsNoSql,
    RefusesAWhereThatClosesItsParenthesis, CountsTheRowsOfASmallTable,
    ReadsTensOfThousandsOfKeysAtOnce, PaysOneRoundTripForAllKeysOfARead,
    PaysOneRoundTripForAWholeScan, SeesRowsThatWereChangedBetweenReads,
    CountsARowThatWhereLeavesOutAsGone, RefusesAKeyThatTwoRowsHave,
    NamesRowsByAllColumnsOfThePrimaryKey, ReadsRowsByAllColumnsOfTheirKey,
    ReadsThousandsOfKeysOfTwoColumnsAtOnce,
    TakesColumnsThatAreUniqueTogetherAsTheKey,
    NumbersTheRowsOfATableWithoutAKey, HasNoKeyForAView,
    LetsReadersAndPartitionsOutliveTheSource);

}  // namespace penstock
