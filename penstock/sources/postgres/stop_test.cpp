#include "penstock/sources/postgres/connection.h"
#include "penstock/sources/postgres/test_pooler.h"
#include "penstock/sources/postgres/test_server.h"
#include "penstock/sources/test_stopping.h"

namespace penstock {
namespace {

/// A table of 200 rows in a schema of its own. A session that waits for a lock
/// would do so for ten seconds.
class PostgresStopTest : public testing::Test {
 protected:
  static constexpr double kSoon = 5;

  void SetUp() override {
    if (!test_postgres().empty())
      schema_.execute(
          "CREATE TABLE t (id bigint PRIMARY KEY, x float8); INSERT INTO t "
          "SELECT i, i FROM generate_series(1, 200) i");
  }
  std::unique_ptr<Source> opened(StopFlag stop, const std::string& where = "") {
    SourceSpec spec = schema_.spec();
    spec.where = where;
    return open_source(spec, {{"x", ReadAs::number}}, {stop});
  }
  /// Whether the server soon runs no statement of ours any more: it is asked to
  /// cancel one, and does so when it gets to it.
  bool nothing_runs() {
    std::string count =
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid "
        "<> pg_backend_pid() AND query LIKE '%" +
        schema_.name() + "%'";
    TestSession other;  // in a transaction the view would not change
    for (int i = 0; i < 60; ++i) {
      if (other.ask(count) == "0") return true;
      other.ask("SELECT pg_sleep(0.05)");
    }
    return false;
  }

  TestSchema schema_;
};

TEST_F(PostgresStopTest, EndsTheOpeningOfATableThatIsLocked) {
  if (test_postgres().empty()) return;
  schema_.execute("BEGIN; LOCK TABLE t");
  SoonStopped soon;
  soon.begin();
  EXPECT_TRUE(stops_within(kSoon, [&] { opened(soon.flag()); }));
  EXPECT_TRUE(nothing_runs());
}

TEST_F(PostgresStopTest, EndsAScanThatWaitsForALock) {
  if (test_postgres().empty()) return;
  SoonStopped soon;
  std::unique_ptr<Source> source = opened(soon.flag());
  schema_.execute("BEGIN; LOCK TABLE t");
  soon.begin();
  EXPECT_TRUE(stops_within(kSoon, [&] { scan_all(*source); }));
  EXPECT_TRUE(nothing_runs());
}

TEST_F(PostgresStopTest, EndsAScanThatGetsNoRow) {
  if (test_postgres().empty()) return;
  SoonStopped soon;
  std::unique_ptr<Source> source =
      opened(soon.flag(),
             "pg_sleep(0.5) IS NOT NULL AND id < 0 OR "
             "pg_sleep(0.5) IS NULL");
  soon.begin();
  EXPECT_TRUE(stops_within(kSoon, [&] { scan_all(*source); }));
  EXPECT_TRUE(nothing_runs());
}

TEST_F(PostgresStopTest, EndsAReadByKeys) {
  if (test_postgres().empty()) return;
  SoonStopped soon;
  std::unique_ptr<Source> source = opened(soon.flag());
  schema_.execute("BEGIN; LOCK TABLE t");
  soon.begin();
  Block block;
  EXPECT_TRUE(stops_within(
      kSoon, [&] { source->open_reader()->read(integer_keys({3}), block); }));
}

TEST_F(PostgresStopTest, EndsAScanBetweenTwoBlocks) {
  if (test_postgres().empty()) return;
  std::atomic<bool> stop{false};
  std::unique_ptr<Source> source = opened(&stop);
  int blocks = 0;
  EXPECT_TRUE(stops_within(kSoon, [&] {
    source->open_reader()->scan(source->partitions(1)[0], {.rows = 50},
                                [&](KeyList&, Block&) {
                                  stop = ++blocks == 2;
                                  return true;
                                });
  }));
  EXPECT_EQ(blocks, 2);
}

TEST_F(PostgresStopTest, ThatNeverComesChangesNothing) {
  if (test_postgres().empty()) return;
  std::atomic<bool> stop{false};
  std::unique_ptr<Source> source = opened(&stop), plain = opened(nullptr);
  Block with = scan_all(*source), without = scan_all(*plain);
  ASSERT_EQ(with.rows, 200);
  ASSERT_EQ(without.rows, 200);
  for (std::int64_t row = 0; row < 200; ++row)
    EXPECT_EQ(with.columns[0].as_float64(row),
              without.columns[0].as_float64(row));
  Block block;
  source->open_reader()->read(integer_keys({7, 3}), block);
  EXPECT_EQ(block.columns[0].as_float64(0), 7);
}

TEST_F(PostgresStopTest, UntilItComesAStatementThatFailsSaysWhy) {
  if (test_postgres().empty()) return;
  std::atomic<bool> stop{false};
  postgres::Connection connection(schema_.spec(),
                                  postgres::Connection::Use::to_read, &stop);
  schema_.execute("BEGIN; LOCK TABLE t");
  Error error = error_of([&] {
    connection.execute("SET lock_timeout = 20; TABLE " + schema_.spec().table);
  });
  EXPECT_EQ(error.parts().code, "postgres.locked");
}

TEST_F(PostgresStopTest, UntilItComesAServerThatEndsIsStillHeardOf) {
  if (test_postgres().empty()) return;
  std::atomic<bool> stop{false};
  postgres::Connection connection(schema_.spec(),
                                  postgres::Connection::Use::to_read, &stop);
  Error error = error_of([&] {
    connection.execute("SELECT pg_terminate_backend(pg_backend_pid())");
  });
  EXPECT_EQ(error.parts().code, "postgres.killed");
}

TEST_F(PostgresStopTest, EndsAReadFromAServerThatHasStoppedAnswering) {
  if (test_postgres().empty()) return;
  TestPooler network;
  SoonStopped soon;
  SourceSpec spec = schema_.spec();
  spec.uri = network.uri();
  std::unique_ptr<Source> source =
      open_source(spec, {{"x", ReadAs::number}}, {soon.flag()});
  std::unique_ptr<Reader> reader = source->open_reader();
  Block block;
  reader->read(integer_keys({3}), block);
  network.stop_answering();
  soon.begin();
  EXPECT_TRUE(
      stops_within(kSoon, [&] { reader->read(integer_keys({4}), block); }));
}

TEST_F(PostgresStopTest, EndsAScanOfAServerThatHasStoppedAnswering) {
  if (test_postgres().empty()) return;
  TestPooler network;
  SoonStopped soon;
  SourceSpec spec = schema_.spec();
  spec.uri = network.uri();
  std::unique_ptr<Source> source =
      open_source(spec, {{"x", ReadAs::number}}, {soon.flag()});
  const std::vector<Partition> parts = source->partitions(1);
  network.stop_answering();
  soon.begin();
  EXPECT_TRUE(stops_within(kSoon, [&] {
    source->open_reader()->scan(parts[0], {.rows = 50},
                                [](KeyList&, Block&) { return true; });
  }));
}

TEST_F(PostgresStopTest, EndsConnectingToAServerThatDoesNotAnswer) {
  if (test_postgres().empty()) return;
  TestPooler network;
  network.stop_answering();
  SoonStopped soon;
  SourceSpec spec = schema_.spec();
  spec.uri = network.uri() + "&connect_timeout=0";
  soon.begin();
  EXPECT_TRUE(stops_within(kSoon, [&] {
    open_source(spec, {{"x", ReadAs::number}}, {soon.flag()});
  }));
}

TEST_F(PostgresStopTest, IsNotNeededToNoticeThatAServerHasStoppedAnswering) {
  if (test_postgres().empty()) return;
  TestPooler network;
  SourceSpec spec = schema_.spec();
  spec.uri = network.uri() + "&connect_timeout=2";
  postgres::Connection connection(spec, postgres::Connection::Use::to_read,
                                  nullptr, std::chrono::seconds(1));
  // A statement that only takes long is waited for.
  connection.execute("SELECT pg_sleep(2.5)");
  network.stop_answering();
  const Error error = error_of([&] { connection.execute("SELECT 1"); });
  EXPECT_EQ(error.parts().code, "postgres.silent");
  EXPECT_FALSE(connection.alive());
}

}  // namespace
}  // namespace penstock
