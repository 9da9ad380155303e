#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
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
  spec.key = "id";
  auto source = open_source(spec, {{"x", ReadAs::number}});
  Block block;
  Error error =
      error_of([&] { source->open_reader()->read(integer_keys({7}), block); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "source.key_twice");
  EXPECT_THAT(error.what(), testing::HasSubstr("key 7"));
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
    LetsReadersAndPartitionsOutliveTheSource);

}  // namespace penstock
