#include "penstock/dataset/table/table_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/dataset/fake/fake_dataset.h"

namespace penstock {
namespace {

using testing::HasSubstr;

template <class Act>
Error error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, {.what = "no error"});
}

class DatasetTest : public testing::TestWithParam<int> {
 protected:
  DatasetTest() { fake_.options.workers = GetParam(); }
  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  FakeDataset fake_;
};

TEST_P(DatasetTest, NumbersSamplesByTheRankOfTheirKey) {
  fake_.table.rows = 9000;
  fake_.table.scrambled = true;
  std::shared_ptr<const TableDataset> set = fake_.prepare(*device_);
  ASSERT_EQ(set->rows(), 9000);
  for (std::int64_t id : {0, 1, 4999, 8999})
    EXPECT_EQ(set->keys().integer(id), 10 * id);
  EXPECT_EQ(fake_.source->counts().rows, 9000) << "the table is read once";
}

TEST_P(DatasetTest, HoldsNoSnapshotAndNoReaderAfterwards) {
  std::shared_ptr<const TableDataset> set = fake_.prepare(*device_);
  EXPECT_EQ(fake_.source->counts().snapshots_open, 0);
  EXPECT_EQ(fake_.source->counts().readers_open, 0);
}

TEST_P(DatasetTest, HasOneFingerprintWhateverTheArrivalAndTheCuts) {
  std::string first = fake_.prepare(*device_)->fingerprint();
  EXPECT_EQ(first.size(), 64u);
  fake_.table.scrambled = true;
  fake_.trouble.most_partitions = 3;
  fake_.options.cache = "none";
  EXPECT_EQ(fake_.prepare(*device_)->fingerprint(), first);
  fake_.table.rows = 999;
  EXPECT_NE(fake_.prepare(*device_)->fingerprint(), first);
}

TEST_P(DatasetTest, KeepsTheSameRowsWhateverTheOrderTheyCameIn) {
  fake_.table.rows = 9000;
  fake_.options.fields = fake_fields(R"(, "standardize": true)");
  std::shared_ptr<const TableDataset> by_key = fake_.prepare(*device_);
  fake_.table.scrambled = true;
  std::shared_ptr<const TableDataset> set = fake_.prepare(*device_);
  ASSERT_EQ(set->table()->bytes(), by_key->table()->bytes());
  EXPECT_EQ(std::memcmp(set->table()->data(), by_key->table()->data(),
                        set->table()->bytes()),
            0);
  EXPECT_EQ(set->statistics(), by_key->statistics());
}

TEST_P(DatasetTest, NamesTheFirstRowByKeyThatATensorCannotHold) {
  FakeTable table = counting_table({.rows = 9000, .scrambled = true});
  for (std::vector<FakeCell>& row : table.rows)
    if (row[0] == FakeCell(std::int64_t{40'000}) ||
        row[0] == FakeCell(std::int64_t{50'000}) ||
        row[0] == FakeCell(std::int64_t{70'000}))
      row[1] = 1e300;
  Error error = error_of([&] {
    TableDataset::prepare(fake_.options,
                          std::make_unique<FakeSource>(
                              table, requests_of(fake_.options), FakeTrouble{}),
                          *device_);
  });
  EXPECT_EQ(error.parts().code, "transform.range");
  EXPECT_THAT(error.parts().where, HasSubstr("row 40000"));
}

TEST_P(DatasetTest, AScanThatHoldsTooMuchEndsWithANamedError) {
  fake_.table.rows = 50'000;
  fake_.options.scan_bytes = 1 << 20;
  fake_.options.store_dir = testing::TempDir();
  Error error = error_of([&] { fake_.prepare(*device_); });
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_EQ(error.parts().code, "scan.too_large");
  EXPECT_EQ(error.parts().where, "a fake table");
  EXPECT_THAT(error.parts().why, HasSubstr("rows take 1."));
  EXPECT_THAT(error.parts().why, HasSubstr("but the limit is 1.0 MiB"));
  EXPECT_THAT(error.parts().next, HasSubstr("'source.where'"));
}

TEST_P(DatasetTest, TheLimitIsSaidBeforeTheScanBegins) {
  std::string said;
  fake_.options.scanning = [&](const std::string& limit) {
    said = limit;
    EXPECT_EQ(fake_.source->counts().rows, 0);
  };
  fake_.options.scan_bytes = std::size_t{64} << 20;
  fake_.prepare(*device_);
  EXPECT_THAT(said, HasSubstr("64.0 MiB: "));
  fake_.options.scan_bytes.reset();
  fake_.prepare(*device_);
  EXPECT_THAT(said, HasSubstr("80 % of "));
}

TEST_P(DatasetTest, ThePlanSaysWhatTheScanHeldAndItsLimit) {
  fake_.options.scan_bytes = std::size_t{64} << 20;
  std::shared_ptr<const TableDataset> set = fake_.prepare(*device_);
  ASSERT_TRUE(set->plan().scan);
  EXPECT_GT(set->plan().scan->bytes, 1000u * 16);
  EXPECT_LT(set->plan().scan->bytes, std::size_t{1} << 20);
  EXPECT_THAT(set->plan().text(), HasSubstr("limit 64.0 MiB\n"));
  EXPECT_EQ(set->plan().json().find("scan")->find("limit")->integer(),
            std::int64_t{64} << 20);
  fake_.options.scan_bytes.reset();
  EXPECT_GT(fake_.prepare(*device_)->plan().scan->limit, std::size_t{1} << 20);
}

TEST_P(DatasetTest, ValuesThatNothingNeedsAreNotHeld) {
  Json statistics = fake_.prepare(*device_)->statistics();
  fake_.options.cache = "none";
  std::shared_ptr<const TableDataset> fitted = fake_.prepare(*device_);
  fake_.options.statistics = statistics;
  std::shared_ptr<const TableDataset> applied = fake_.prepare(*device_);
  EXPECT_EQ(applied->fingerprint(), fitted->fingerprint());
  EXPECT_LT(applied->plan().scan->bytes, fitted->plan().scan->bytes / 2);
  TableDataset::RowReader reader(*applied);
  ParsedBlock rows;
  std::vector<SampleId> ids = {4, 2};
  reader.read(ids, rows);
  EXPECT_EQ(rows.fields.size(), 2u);
}

TEST_P(DatasetTest, ARowNeverChangesSidesWhenOthersAreAdded) {
  fake_.options.split = {.train = 0.7, .val = 0.2, .seed = 3, .by = "group"};
  fake_.table.rows = 500;
  std::shared_ptr<const TableDataset> small = fake_.prepare(*device_);
  fake_.table.rows = 2000;
  std::shared_ptr<const TableDataset> large = fake_.prepare(*device_);
  EXPECT_GT(small->side(Side::val).size(), 0);
  for (std::int64_t id = 0; id < 500; ++id) {
    EXPECT_EQ(small->side(Side::train).contains(id),
              large->side(Side::train).contains(id));
    EXPECT_EQ(large->side(Side::train).contains(id),
              large->side(Side::train).contains(id / 7 * 7))
        << "rows of a group share their side";
  }
  EXPECT_LT(large->side(Side::train).size() + large->side(Side::val).size(),
            2000);
}

TEST_P(DatasetTest, StopsAtABadRowAndNamesIt) {
  fake_.table.bad_row = 7;
  Error error = error_of([&] { fake_.prepare(*device_); });
  EXPECT_EQ(error.kind(), ErrorKind::transform);
  EXPECT_THAT(error.parts().why, HasSubstr("row 70, column 'value'"));
  EXPECT_THAT(error.parts().what, HasSubstr("1 row is"));
}

TEST_P(DatasetTest, SkipsABadRowBeforeAnyOrderExists) {
  fake_.table.bad_row = 7;
  fake_.options.source.skip_bad = true;
  std::shared_ptr<const TableDataset> set = fake_.prepare(*device_);
  EXPECT_EQ(set->rows(), 999);
  EXPECT_EQ(set->keys().integer(7), 80);
  ASSERT_EQ(set->facts().scan->quarantine.size(), 1u);
  EXPECT_EQ(set->facts().scan->quarantine[0].shown_key, "70");
  EXPECT_EQ(set->facts().scan->left_out(), 1);
}

TEST_P(DatasetTest, LeavesShortListsOutAndCountsThem) {
  fake_.options.fields =
      parse_fields(Json::parse(R"({"items": {"json_set": {"column": "items",
                      "keys": ["a"], "max": 4, "min": 3}}})",
                               "test"),
                   "fields");
  std::shared_ptr<const TableDataset> set = fake_.prepare(*device_);
  EXPECT_EQ(set->rows(), 600);
  EXPECT_EQ(set->facts().scan->too_short, 400);
}

TEST_P(DatasetTest, ASourceThatDiesHalfWayIsHeard) {
  fake_.table.rows = 50'000;
  fake_.trouble.fail_at_block = 5;
  Error error = error_of([&] { fake_.prepare(*device_); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
}

TEST_P(DatasetTest, RefusesAnEmptyTable) {
  fake_.table.rows = 0;
  EXPECT_EQ(error_of([&] { fake_.prepare(*device_); }).parts().code,
            "source.empty");
}

TEST_P(DatasetTest, TellsItsTierPlanBeforeItAllocates) {
  std::string shown;
  fake_.options.planned = [&](const TierPlan& plan) { shown = plan.text(); };
  EXPECT_EQ(fake_.prepare(*device_)->plan().tier, Tier::ram);
  EXPECT_THAT(shown, HasSubstr("* ram"));
}

TEST_P(DatasetTest, AnAppliedStatisticIsNotFittedAnew) {
  fake_.options.fields = fake_fields(R"(, "standardize": true)");
  Json statistics = fake_.prepare(*device_)->statistics();
  Json& mean = statistics["value"]["value"]["mean"];
  EXPECT_DOUBLE_EQ(mean.number(), 499.5);
  mean = 1.0;
  fake_.options.statistics = statistics;
  EXPECT_EQ(fake_.prepare(*device_)->statistics(), statistics);
}

INSTANTIATE_TEST_SUITE_P(Workers, DatasetTest, testing::Values(0, 1, 2, 8));

TEST(DatasetKeys, TwoRowsWithOneKeyAreRefused) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  FakeDataset fake;
  FakeTable table = counting_table(fake.table);
  table.rows[5][0] = table.rows[9][0];
  Error error = error_of([&] {
    TableDataset::prepare(fake.options,
                          std::make_unique<FakeSource>(
                              table, requests_of(fake.options), FakeTrouble{}),
                          *device);
  });
  EXPECT_EQ(error.parts().code, "source.duplicate_key");
  EXPECT_THAT(error.parts().what, HasSubstr("90"));
}

// Tier `none` reads by key and would find both rows.
TEST(DatasetKeys, ARowThatIsLeftOutCountsToo) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  for (const char* lists : {"[]", "no list"})
    for (std::int64_t other : {3, 4}) {
      FakeDataset fake;
      fake.options.source.skip_bad = true;
      FakeTable table = counting_table(fake.table);
      std::vector<FakeCell> twin = table.rows[3];
      twin[3] = lists;
      table.rows.push_back(twin);
      if (other == 4) table.rows[3][3] = lists;  // both are left out
      Error error = error_of([&] {
        TableDataset::prepare(
            fake.options,
            std::make_unique<FakeSource>(table, requests_of(fake.options),
                                         FakeTrouble{}),
            *device);
      });
      EXPECT_EQ(error.parts().code, "source.duplicate_key") << lists;
      EXPECT_THAT(error.parts().what, HasSubstr("30"));
    }
}

TEST(DatasetKeys, TextAndUuidKeysKeepTheirOrder) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  for (ColumnType key : {ColumnType::text, ColumnType::uuid}) {
    FakeDataset fake;
    fake.table.key = key;
    fake.table.scrambled = true;
    std::shared_ptr<const TableDataset> set = fake.prepare(*device);
    for (std::int64_t id = 1; id < set->rows(); ++id)
      ASSERT_EQ(set->keys().compare(id - 1, id), -1);
  }
}

TEST(RowReader, NoticesARowThatChangedOrWentAway) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  FakeDataset fake;
  fake.options.cache = "none";
  std::shared_ptr<const TableDataset> set = fake.prepare(*device);
  TableDataset::RowReader reader(*set);
  ParsedBlock rows;
  std::vector<SampleId> ids = {4, 4, 2};
  reader.read(ids, rows);
  EXPECT_EQ(rows.rows(), 3);
  FakeTable table = counting_table(fake.table);
  std::vector<FakeCell> changed = table.rows[2];
  changed[1] = 2.5;
  fake.source->change_row(2, changed);
  Error error = error_of([&] { reader.read(ids, rows); });
  EXPECT_EQ(error.parts().code, "source.row_changed");
  EXPECT_THAT(error.parts().what, HasSubstr("row 20"));
  fake.source->remove_row(4);
  EXPECT_EQ(error_of([&] { reader.read(ids, rows); }).kind(),
            ErrorKind::source);
}

}  // namespace
}  // namespace penstock
