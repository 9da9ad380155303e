#include <gmock/gmock.h>

#include "penstock/sources/postgres/connection.h"
#include "penstock/sources/postgres/test_pooler.h"

namespace penstock {
namespace {

/// Everything that is read through a pooler in transaction mode.
class PostgresPooler : public testing::Test {
 protected:
  void SetUp() override {
    if (IsSkipped()) return;
    schema_.execute(
        "CREATE TABLE t(id int PRIMARY KEY, day date, x float8) WITH "
        "(fillfactor = 10); INSERT INTO t SELECT i, '2026-01-01', i * 0.5 FROM "
        "generate_series(1, 20000) i");
    pooler_ = std::make_unique<TestPooler>();
  }
  SourceSpec spec() {
    SourceSpec spec = schema_.spec();
    spec.uri = pooler_->uri();
    return spec;
  }

  TestSchema schema_;
  std::unique_ptr<TestPooler> pooler_;
};

TEST_F(PostgresPooler, IsReadThroughAsTheServerItself) {
  auto source = open_source(spec(), {{"x", ReadAs::number}});
  EXPECT_EQ(scan_all(*source).rows, 20000);
  EXPECT_EQ(source->count().rows, 20000);
  auto reader = source->open_reader();
  Block block;
  for (std::int64_t id : {7, 8, 20000}) {
    reader->read(integer_keys({id}), block);
    EXPECT_EQ(block.columns[0].as_float64(0), 0.5 * static_cast<double>(id));
  }
  EXPECT_GT(pooler_->switches(), 5) << "it is no pooler";
}

TEST_F(PostgresPooler, GivesOneConnectionToAScan) {
  auto source = open_source(spec(), {{"x", ReadAs::number}});
  EXPECT_EQ(source->partitions(8).size(), 1u);
  EXPECT_GT(open_source(schema_.spec(), {{"x", ReadAs::number}})
                ->partitions(8)
                .size(),
            1u)
      << "of the server itself there are more";
}

TEST_F(PostgresPooler, ShowsOneMomentToAScan) {
  auto source = open_source(spec(), {{"x", ReadAs::number}});
  auto partitions = source->partitions(1);
  schema_.execute("UPDATE t SET x = -1; DELETE FROM t WHERE id > 100");
  std::int64_t rows = 0;
  source->open_reader()->scan(partitions[0], {}, [&](KeyList&, Block& block) {
    rows += block.rows;
    EXPECT_GT(block.columns[0].as_float64(0), 0);
    return true;
  });
  EXPECT_EQ(rows, 20000);
}

TEST_F(PostgresPooler, KeepsOurSettingsInItsTransactions) {
  SourceSpec utc = spec();
  utc.query =
      "SELECT 1 AS id, current_setting('TimeZone') || ' ' || "
      "current_setting('DateStyle') || ' ' || "
      "current_setting('transaction_read_only') || ' ' || "
      "current_setting('lock_timeout') AS x";
  utc.table = "";
  utc.key = {"id"};
  auto source = open_source(utc, {{"x", ReadAs::value}});
  EXPECT_THAT(scan_all(*source).columns[0].text(0),
              testing::MatchesRegex("UTC ISO, ... on 10s"));
  Block block;
  source->open_reader()->read(integer_keys({1}), block);
  EXPECT_THAT(block.columns[0].text(0),
              testing::MatchesRegex("UTC ISO, ... on 10s"));
}

TEST_F(PostgresPooler, LeavesNoSettingsInSessionsThatOthersGetNext) {
  postgres::Connection connection(spec(), postgres::Connection::Use::to_read);
  EXPECT_TRUE(connection.pooled());
  for (int i = 0; i < 6; ++i) {  // each of its sessions, and again
    postgres::Result found = connection.execute(
        "SELECT current_setting('default_transaction_read_only') || ' ' || "
        "current_setting('plan_cache_mode') || ' ' || "
        "current_setting('lock_timeout')");
    EXPECT_EQ(postgres::text_in(found, 0, 0), "off auto 0");
    connection.run_in_transaction("SELECT 1", {});
    connection.run_in_transaction("SELECT 1", {});
  }
}

TEST_F(PostgresPooler, ReadsKeysOfSeveralColumnsAndPlaces) {
  SourceSpec both = spec();
  both.key = {"day", "id"};
  auto source = open_source(both, {{"x", ReadAs::number}});
  Block block;
  source->open_reader()->read(text_keys({"2026-01-01\tA7"}), block);
  EXPECT_EQ(block.columns[0].as_float64(0), 3.5);
  schema_.execute("ALTER TABLE t DROP CONSTRAINT t_pkey");
  auto places = open_source(spec(), {{"id", ReadAs::integer}});
  ScannedBlock rows = scan_all(*places);
  KeyList last;
  last.append(rows.keys, 19999);
  places->open_reader()->read(last, block);
  EXPECT_EQ(block.columns[0].int64(0), rows.columns[0].int64(19999));
}

TEST_F(PostgresPooler, RefusesAQueryThatWrites) {
  SourceSpec writing = spec();
  writing.table = "";
  writing.key = {"id"};
  for (const std::string& query :
       {"DELETE FROM " + schema_.name() + ".t RETURNING id",
        "SELECT id FROM " + schema_.name() + ".t FOR UPDATE"}) {
    writing.query = query;
    Error error = error_of([&] { scan_all(*open_source(writing, {})); });
    EXPECT_EQ(error.parts().code, "source.query_writes") << query;
  }
  writing.query = "SELECT id FROM " + schema_.name() + ".t LIMIT 3";
  EXPECT_EQ(scan_all(*open_source(writing, {})).rows, 3);
}

TEST_F(PostgresPooler, NamesWhatFailedAndGoesOn) {
  auto source = open_source(spec(), {{"x", ReadAs::number}});
  auto reader = source->open_reader();
  Block block;
  reader->read(integer_keys({7}), block);
  schema_.execute("ALTER TABLE t RENAME TO other");
  Error error = error_of([&] { reader->read(integer_keys({7}), block); });
  EXPECT_EQ(error.parts().code, "postgres.table_gone");
  schema_.execute("ALTER TABLE other RENAME TO t");
  reader->read(integer_keys({8}), block);
  EXPECT_EQ(block.columns[0].as_float64(0), 4.0);
}

}  // namespace
}  // namespace penstock
