#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// Rows 0, 1, ... of which each takes about `bytes` in the table.
std::string rows_sql(std::int64_t rows, int bytes = 0) {
  return "CREATE TABLE t(id int PRIMARY KEY, x float8, filler text); ALTER "
         "TABLE t ALTER filler SET STORAGE PLAIN; INSERT INTO t SELECT i, i * "
         "0.5, repeat('x', " +
         std::to_string(bytes) + ") FROM generate_series(0, " +
         std::to_string(rows - 1) + ") i";
}

const std::vector<ColumnRequest> kX = {{"x", ReadAs::number}};

class PostgresReader : public testing::Test {
 protected:
  std::unique_ptr<Source> open() { return open_source(schema_.spec(), kX); }
  std::vector<std::int64_t> keys_of(Source& source,
                                    const std::vector<Partition>& parts) {
    std::vector<std::int64_t> keys;
    auto reader = source.open_reader();
    for (const Partition& part : parts)
      reader->scan(part, {.rows = 100}, [&](KeyList& of_block, Block& block) {
        for (std::int64_t row = 0; row < block.rows; ++row)
          keys.push_back(of_block.integer(row));
        return true;
      });
    std::ranges::sort(keys);
    return keys;
  }
  /// Backends that hold a transaction on this test's table.
  std::string holders() {
    return schema_.ask(
        "SELECT count(DISTINCT pid) FROM pg_locks WHERE relation = 't'::"
        "regclass AND pid <> pg_backend_pid()");
  }

  TestSchema schema_;
};

TEST_F(PostgresReader, CutsALargeTableIntoRangesOfPages) {
  schema_.execute(rows_sql(9000, 1000));  // some 9 MiB
  auto source = open();
  std::vector<std::int64_t> all;
  for (std::int64_t key = 0; key < 9000; ++key) all.push_back(key);
  for (int readers : {0, 1, 2, 4, 8}) {
    auto parts = source->partitions(readers);
    EXPECT_EQ(parts.size(), std::size_t(std::clamp(readers, 1, 5)));
    EXPECT_EQ(keys_of(*source, parts), all) << readers;
  }
  EXPECT_EQ(source->partitions(1)[0].range, "all rows");
  EXPECT_THAT(source->partitions(2)[1].range,
              testing::MatchesRegex("pages [0-9]+[.][.]"));
}

TEST_F(PostgresReader, GivesEveryPartitionRowsOfItsOwn) {
  schema_.execute(rows_sql(9000, 1000));
  auto source = open();
  for (const Partition& part : source->partitions(4)) {
    EXPECT_GT(keys_of(*source, {part}).size(), 1500u) << part.range;
    EXPECT_LT(keys_of(*source, {part}).size(), 3000u) << part.range;
  }
}

TEST_F(PostgresReader, DoesNotCutASmallTable) {
  schema_.execute(rows_sql(1000, 1000));
  EXPECT_EQ(open()->partitions(8).size(), 1u);
}

TEST_F(PostgresReader, ScansOnceForAllEvenWhenRowsMove) {
  schema_.execute(rows_sql(9000, 1000));
  auto source = open();
  auto parts = source->partitions(2);
  // A new version of each row, at the end of the table.
  schema_.execute("UPDATE t SET x = -1; DELETE FROM t WHERE id < 100");
  EXPECT_EQ(keys_of(*source, parts).size(), 9000u);
}

TEST_F(PostgresReader, ScansInThreadsOnOneSnapshot) {
  schema_.execute(rows_sql(9000, 1000));
  auto source = open();
  auto parts = source->partitions(4);
  schema_.execute("DELETE FROM t");
  std::vector<std::size_t> found(parts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t at = 0; at < parts.size(); ++at)
      threads.emplace_back(
          [&, at] { found[at] = keys_of(*source, {parts[at]}).size(); });
  }
  EXPECT_EQ(found[0] + found[1] + found[2] + found[3], 9000u);
}

TEST_F(PostgresReader, UsesOneConnectionForAllPartitionsOfAReader) {
  schema_.execute(rows_sql(9000, 1000));
  SourceSpec spec = schema_.spec();
  spec.uri += "&application_name=" + schema_.name();
  auto source = open_source(spec, kX);
  std::string count =
      "SELECT count(*) FROM pg_stat_activity WHERE "
      "application_name = '" +
      schema_.name() + "'";
  auto parts = source->partitions(4);
  EXPECT_EQ(keys_of(*source, parts).size(), 9000u);
  EXPECT_EQ(schema_.ask(count), "1");
}

TEST_F(PostgresReader, EndsEarlyWithoutTakingTheRest) {
  schema_.execute(rows_sql(30000, 1000));
  auto source = open();
  auto parts = source->partitions(2);
  auto reader = source->open_reader();
  for (int round = 0; round < 3; ++round)
    for (const Partition& part : parts) {
      int blocks = 0;
      reader->scan(part, {.rows = 10},
                   [&](KeyList&, Block&) { return ++blocks < 2; });
      EXPECT_EQ(blocks, 2);
    }
  EXPECT_EQ(keys_of(*source, parts).size(), 30000u);
}

TEST_F(PostgresReader, EndsEarlyOnAConnectionOfItsOwnToo) {
  schema_.execute(rows_sql(30000, 1000));
  auto source = open();
  auto parts = source->partitions(2);
  auto outer = source->open_reader();
  outer->scan(parts[0], {.rows = 100},
              [&](KeyList&, Block&) {  // holds the snapshot's own
                auto inner = source->open_reader();
                int blocks = 0;
                inner->scan(parts[1], {.rows = 10},
                            [&](KeyList&, Block&) { return ++blocks < 2; });
                EXPECT_EQ(blocks, 2);
                EXPECT_THROW(
                    inner->scan(parts[1], {.rows = 10},
                                [](KeyList&, Block&) -> bool {
                                  throw std::runtime_error("the sink is full");
                                }),
                    std::runtime_error);
                EXPECT_GT(keys_of(*source, {parts[1]}).size(), 10000u);
                return false;
              });
}

TEST_F(PostgresReader, EndsItsTransactionWithTheLastPartition) {
  schema_.execute(rows_sql(10));
  auto source = open();
  auto reader = source->open_reader();
  auto parts = source->partitions(1);
  keys_of(*source, parts);
  EXPECT_EQ(holders(), "1");
  parts.clear();
  // The server notices a moment later.
  for (int i = 0; i < 1000 && holders() != "0"; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(holders(), "0");
}

TEST_F(PostgresReader, HoldsNoTransactionBetweenReads) {
  schema_.execute(rows_sql(10));
  auto source = open();
  auto reader = source->open_reader();
  Block block;
  reader->read(integer_keys(0, 10), block);
  EXPECT_EQ(holders(), "0");
}

TEST_F(PostgresReader, CannotWrite) {
  schema_.execute(rows_sql(3) +
                  "; CREATE FUNCTION spoil() RETURNS int VOLATILE LANGUAGE sql "
                  "AS 'INSERT INTO t VALUES (99); SELECT 1'");
  SourceSpec spec = schema_.spec();
  spec.where = schema_.name() + ".spoil() = 1";
  spec.uri += "&options=-c%20search_path%3D" + schema_.name();
  auto source = open_source(spec, kX);
  Block block;
  EXPECT_EQ(error_of([&] { scan_all(*source); }).parts().code,
            "source.query_writes");
  EXPECT_EQ(
      error_of([&] { source->open_reader()->read(integer_keys(0, 1), block); })
          .parts()
          .code,
      "source.query_writes");
  EXPECT_EQ(schema_.ask("SELECT count(*) FROM t"), "3");
}

TEST_F(PostgresReader, ReadsKeysOfEveryTextType) {
  for (const char* type : {"text", "varchar(9)", "char(9)"}) {
    schema_.execute("DROP TABLE IF EXISTS t; CREATE TABLE t(id " +
                    std::string(type) +
                    " PRIMARY KEY, x float8); INSERT INTO t VALUES ('b', 1), "
                    "('', 2), ('a b', 3)");
    Block block;
    open()->open_reader()->read(text_keys({"a b", "", "b"}), block);
    ASSERT_EQ(block.rows, 3) << type;
    EXPECT_EQ(block.columns[0].as_float64(0), 3.0) << type;
    EXPECT_EQ(block.columns[0].as_float64(1), 2.0) << type;
    EXPECT_EQ(block.columns[0].as_float64(2), 1.0) << type;
  }
}

TEST_F(PostgresReader, ReadsKeysOfEveryIntegerTypeByItsIndex) {
  for (const char* type : {"int2", "int4", "int8"}) {
    schema_.execute("DROP TABLE IF EXISTS t; CREATE TABLE t(id " +
                    std::string(type) +
                    " PRIMARY KEY, x float8); INSERT INTO t SELECT i, i FROM "
                    "generate_series(0, 29999) i; ANALYZE t");
    Block block;
    open()->open_reader()->read(integer_keys(20000, 20100), block);
    EXPECT_EQ(block.columns[0].as_float64(99), 20099.0) << type;
    EXPECT_THAT(schema_.ask("EXPLAIN SELECT * FROM t WHERE id = ANY("
                            "ARRAY[1, 2, 3]::bigint[])"),
                HasSubstr("Index Scan"))
        << type;
  }
}

TEST_F(PostgresReader, TellsKeysApartThatTheColumnDoesNot) {
  if (!schema_.session().try_execute(
          "CREATE COLLATION nocase (provider = icu, locale = "
          "'und-u-ks-level2', deterministic = false)"))
    GTEST_SKIP() << "this server was built without ICU";
  schema_.execute(
      "CREATE TABLE t(id text COLLATE nocase, x float8); INSERT "
      "INTO t VALUES ('a', 1), ('A', 2), ('b', 3)");
  SourceSpec spec = schema_.spec();
  spec.key = {"id"};
  Block block;
  open_source(spec, kX)->open_reader()->read(text_keys({"b", "A"}), block);
  ASSERT_EQ(block.rows, 2);
  EXPECT_EQ(block.columns[0].as_float64(0), 3.0);
  EXPECT_EQ(block.columns[0].as_float64(1), 2.0);
}

TEST_F(PostgresReader, NamesTheTableThatWentAway) {
  schema_.execute(rows_sql(10));
  auto source = open();
  schema_.execute("DROP TABLE t");
  Block block;
  Error error =
      error_of([&] { source->open_reader()->read(integer_keys(0, 1), block); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "postgres.table_gone");
  EXPECT_THAT(error.what(), HasSubstr("does not exist"));
  EXPECT_THAT(error.parts().next, HasSubstr("dropped or renamed"));
}

TEST_F(PostgresReader, LetsTwoScansOfOnePartitionRunAtOnce) {
  schema_.execute(rows_sql(5000));
  auto source = open();
  auto parts = source->partitions(1);
  std::vector<std::size_t> rows(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t& count : rows)
      threads.emplace_back([&] { count = keys_of(*source, parts).size(); });
  }
  EXPECT_THAT(rows, testing::Each(5000u));
}

}  // namespace
}  // namespace penstock
