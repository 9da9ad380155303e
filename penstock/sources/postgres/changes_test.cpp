#include <gmock/gmock.h>

#include <chrono>
#include <latch>
#include <thread>

#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<ColumnRequest> kX = {{"x", ReadAs::number}};

/// What other programs do to a table (id, x) while it is read: ten rows whose x
/// is 1, unless it says otherwise.
class PostgresChange : public testing::Test {
 protected:
  PostgresChange() {
    if (test_postgres().empty()) return;
    schema_.execute(
        "CREATE TABLE t(id int PRIMARY KEY, x float8); INSERT INTO t SELECT i, "
        "1 FROM generate_series(1, 10) i");
    other_ = std::make_unique<TestSession>();
    other_->execute("SET search_path = " + schema_.name());
  }
  std::unique_ptr<Source> open(const std::string& table = "t") {
    SourceSpec spec = schema_.spec(table);
    spec.key = {"id"};
    return open_source(spec, kX);
  }
  /// All rows of a pass whose beginning finds another program in the middle of
  /// a transaction, which commits as soon as the pass waits for it. Where it
  /// does not wait, the commit comes between its beginning and its first row.
  Block scan_while(Source& source, const std::string& transaction) {
    other_->execute("BEGIN; " + transaction);
    std::vector<Partition> parts;
    std::optional<Error> failed;
    {
      std::jthread beginning([&] {
        try {
          parts = source.partitions(1);
        } catch (const Error& error) {
          failed = error;
        }
      });
      wait_for_waiting();
      other_->execute("COMMIT");
    }
    if (failed) throw *failed;
    Block all;
    auto reader = source.open_reader();
    for (const Partition& part : parts)
      reader->scan(part, {.rows = 100000}, [&](KeyList&, Block& block) {
        all = std::move(block);
        return true;
      });
    return all;
  }
  /// Until somebody waits for a lock on a relation of this test, or soon.
  bool wait_for_waiting() {
    std::string count =
        "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation "
        "WHERE NOT l.granted AND c.relnamespace = '" +
        schema_.name() + "'::regnamespace";
    TestSession looking;
    for (int i = 0; i < 100; ++i) {
      if (looking.ask(count) != "0") return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  static double sum(const Block& block) {
    double sum = 0;
    for (std::int64_t row = 0; row < block.rows; ++row)
      sum += block.columns[0].as_float64(row);
    return sum;
  }
  void grant(const std::string& right) {
    schema_.execute("GRANT USAGE ON SCHEMA " + schema_.name() +
                    " TO password_only; GRANT " + right + " TO password_only");
  }

  TestSchema schema_;
  std::unique_ptr<TestSession> other_;
};

constexpr const char* kRefill =
    "TRUNCATE t; INSERT INTO t SELECT i, 2 FROM generate_series(1, 10) i";
constexpr const char* kToBigint = "ALTER TABLE t ALTER x TYPE bigint";

TEST_F(PostgresChange, OfATypeBeforeAPassIsAnError) {
  auto source = open();
  schema_.execute(kToBigint);
  Error error = error_of([&] { scan_all(*source); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "postgres.changed");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'x'"), HasSubstr("bigint now"),
                                  HasSubstr("double precision")));
  EXPECT_EQ(sum(scan_all(*open())), 10);
}

TEST_F(PostgresChange, OfATypeThatGoesOnIsWaitedForAndAnError) {
  auto source = open();
  EXPECT_EQ(error_of([&] { scan_while(*source, kToBigint); }).parts().code,
            "postgres.changed");
}

TEST_F(PostgresChange, OfATypeInAViewIsAnError) {
  schema_.execute("CREATE VIEW v AS SELECT * FROM t");
  auto source = open("v");
  schema_.execute(std::string("DROP VIEW v; ") + kToBigint +
                  "; CREATE VIEW v AS SELECT * FROM t");
  EXPECT_EQ(error_of([&] { scan_all(*source); }).parts().code,
            "postgres.changed");
}

TEST_F(PostgresChange, OfATypeBeforeAReadByKeysIsAnError) {
  auto source = open();
  schema_.execute(kToBigint);
  Block block;
  EXPECT_EQ(
      error_of([&] { source->open_reader()->read(integer_keys({1}), block); })
          .parts()
          .code,
      "postgres.changed");
}

TEST_F(PostgresChange, OfATypeBetweenTwoReadsByKeysIsAnError) {
  auto source = open();
  auto reader = source->open_reader();
  Block block;
  reader->read(integer_keys({1}), block);
  schema_.execute(kToBigint);
  Error error = error_of([&] { reader->read(integer_keys({2}), block); });
  EXPECT_EQ(error.parts().code, "postgres.changed");
  EXPECT_THAT(error.parts().next, HasSubstr("start again"));
}

TEST_F(PostgresChange, OfAColumnThatIsGoneIsAnError) {
  auto source = open();
  schema_.execute("ALTER TABLE t RENAME x TO y");
  EXPECT_EQ(error_of([&] { scan_all(*source); }).parts().code,
            "postgres.changed");
}

TEST_F(PostgresChange, OfTheTableWaitsForTheEndOfAPass) {
  auto source = open();
  auto parts = source->partitions(1);
  other_->execute("SET lock_timeout = '50ms'");
  for (const char* sql :
       {kToBigint, "TRUNCATE t", "DROP TABLE t", "ALTER TABLE t RENAME TO u"})
    EXPECT_FALSE(other_->try_execute(sql)) << sql;
  // A running system goes on.
  for (const char* sql :
       {"INSERT INTO t VALUES (11, 5)", "UPDATE t SET x = 7 WHERE id = 1",
        "DELETE FROM t WHERE id = 2", "CREATE INDEX ON t(x)", "ANALYZE t"})
    EXPECT_TRUE(other_->try_execute(sql)) << sql;
  Block block;
  source->open_reader()->scan(parts[0], {.rows = 100},
                              [&](KeyList&, Block& rows) {
                                block = std::move(rows);
                                return true;
                              });
  EXPECT_EQ(sum(block), 10);
  parts.clear();
  other_->execute("SET lock_timeout = '10s'; TRUNCATE t");
}

TEST_F(PostgresChange, ThatEmptiesAndFillsTheTableIsWaitedFor) {
  auto source = open();
  EXPECT_EQ(sum(scan_while(*source, kRefill)), 20);
}

TEST_F(PostgresChange, ThatPutsAnotherTableInItsPlaceIsWaitedFor) {
  schema_.execute("CREATE TABLE filled(LIKE t)");
  auto source = open();
  EXPECT_EQ(
      sum(scan_while(*source,
                     "INSERT INTO filled VALUES (1, 8); ALTER TABLE t RENAME "
                     "TO old; ALTER TABLE filled RENAME TO t")),
      8);
}

TEST_F(PostgresChange, ThatRefillsAPartitionIsWaitedFor) {
  schema_.execute(
      "CREATE TABLE p(id int, x float8) PARTITION BY RANGE (id); CREATE TABLE "
      "p1 PARTITION OF p FOR VALUES FROM (0) TO (100); CREATE TABLE p2 "
      "PARTITION OF p FOR VALUES FROM (100) TO (200); INSERT INTO p VALUES "
      "(1, 1), (101, 1)");
  auto source = open("p");
  EXPECT_EQ(
      sum(scan_while(*source, "TRUNCATE p2; INSERT INTO p2 VALUES (101, 5)")),
      6);
  schema_.execute("CREATE TABLE p3(LIKE p)");
  EXPECT_EQ(
      sum(scan_while(*source,
                     "INSERT INTO p3 VALUES (102, 9); ALTER TABLE p DETACH "
                     "PARTITION p2; ALTER TABLE p ATTACH PARTITION p3 FOR "
                     "VALUES FROM (100) TO (200)")),
      10);
}

TEST_F(PostgresChange, OfWhatAViewReadsIsWaitedFor) {
  schema_.execute(
      "CREATE VIEW v AS SELECT * FROM t; CREATE VIEW w AS SELECT id, x FROM v");
  auto source = open("w");
  EXPECT_EQ(sum(scan_while(*source, kRefill)), 20);
}

TEST_F(PostgresChange, OfWhatWhereReadsIsWaitedFor) {
  schema_.execute("CREATE TABLE chosen(id int); INSERT INTO chosen VALUES (3)");
  SourceSpec spec = schema_.spec();
  spec.where = "id IN (SELECT id FROM " + schema_.name() + ".chosen)";
  auto source = open_source(spec, kX);
  EXPECT_EQ(sum(scan_while(*source,
                           "TRUNCATE chosen; INSERT INTO chosen VALUES (4), "
                           "(5)")),
            2);
}

// LOCK TABLE wants a right to the whole table.
TEST_F(PostgresChange, IsWaitedForByWhoMayReadSingleColumns) {
  grant("SELECT (id, x) ON t");
  SourceSpec spec = schema_.spec();
  spec.uri = schema_.uri_of("password_only:open%2C%20sesame");
  auto source = open_source(spec, kX);
  EXPECT_EQ(sum(scan_while(*source, kRefill)), 20);
  EXPECT_EQ(sum(scan_while(*source,
                           "CREATE TABLE filled(LIKE t); INSERT INTO filled "
                           "VALUES (1, 8); DROP TABLE t; ALTER TABLE filled "
                           "RENAME TO t; GRANT SELECT (id, x) ON t TO "
                           "password_only")),
            8);
}

TEST_F(PostgresChange, OfAMaterializedViewIsWaitedFor) {
  schema_.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM t");
  auto source = open("m");
  EXPECT_EQ(sum(scan_while(*source,
                           "UPDATE t SET x = 4; REFRESH MATERIALIZED VIEW m")),
            40);
  EXPECT_EQ(sum(scan_while(*source,
                           "UPDATE t SET x = 5; DROP MATERIALIZED VIEW m; "
                           "CREATE MATERIALIZED VIEW m AS SELECT * FROM t")),
            50);
}

// Who waits for the table holds up all who come behind, and waits himself until
// the first connection of the pass has read what it holds.
TEST_F(PostgresChange, ThatWaitsHoldsNoReaderUp) {
  schema_.execute(
      "ALTER TABLE t ADD filler text; ALTER TABLE t ALTER filler SET STORAGE "
      "PLAIN; INSERT INTO t SELECT i, 1, repeat('x', 1000) FROM "
      "generate_series(11, 9000) i");
  auto source = open();
  auto parts = source->partitions(2);
  ASSERT_EQ(parts.size(), 2u);
  ASSERT_NE(PQsendQuery(other_->get(), "TRUNCATE t"), 0);
  ASSERT_TRUE(wait_for_waiting());
  std::int64_t rows[2] = {};
  auto scan = [&](std::size_t part, const std::function<void()>& first) {
    source->open_reader()->scan(parts[part], {.rows = 100},
                                [&](KeyList&, Block& block) {
                                  if (rows[part] == 0) first();
                                  rows[part] += block.rows;
                                  return true;
                                });
  };
  {
    std::jthread second;
    std::latch joined(1);
    scan(0, [&] {  // holds the snapshot's own connection
      second = std::jthread([&] {
        joined.count_down();
        scan(1, [] {});
      });
      joined.wait();
    });
  }
  EXPECT_EQ(rows[0] + rows[1], 9000);
  parts.clear();
  PQclear(PQgetResult(other_->get()));
  while (PGresult* result = PQgetResult(other_->get())) PQclear(result);
  EXPECT_EQ(schema_.ask("SELECT count(*) FROM t"), "0");
}

TEST_F(PostgresChange, ThatTakesTooLongIsNamed) {
  SourceSpec spec = schema_.spec();
  spec.uri += "&options=-c%20lock_timeout%3D50ms";
  auto source = open_source(spec, kX);
  other_->execute("BEGIN; LOCK TABLE t");
  EXPECT_EQ(error_of([&] { source->partitions(1); }).parts().code,
            "postgres.locked");
}

}  // namespace
}  // namespace penstock
