#include "penstock/dataset/prepare_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "penstock/dataset/fake/fake_dataset.h"
#include "penstock/dataset/table/preparation_plan.h"
#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class PrepareDataset : public testing::Test {
 protected:
  PrepareDataset() { set_fields(R"({"value": {"columns": ["value"]}})"); }

  void set_fields(const std::string& json) {
    options_.fields = parse_fields(Json::parse(json, "test"), "fields");
  }
  std::unique_ptr<FakeStore> store(FakeStoreTrouble trouble = {}) {
    auto made = counting_store(50, requests_of(options_), std::move(trouble));
    store_ = made.get();
    return made;
  }
  /// Why rows are scanned; empty: they are not.
  std::string reason() { return reason_of(store()); }
  std::string reason_of(std::shared_ptr<Source> source) {
    const PreparationPlan plan = plan_preparation(
        options_, bound_source(options_.fields, std::move(source)), {});
    return plan.form == RowsForm::scanned ? plan.reason : "";
  }
  std::shared_ptr<const Dataset> prepare() {
    return prepare_dataset(options_, store(), *device_);
  }

  TableDatasetOptions options_;
  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  FakeStore* store_ = nullptr;
};

TEST_F(PrepareDataset, ReadsNothingWhereNothingNeedsAScan) {
  for (const char* cache : {"auto", "none"}) {
    options_.cache = cache;
    std::string plan;
    bool scanned = false;
    options_.planned = [&](const TierPlan& of) { plan = of.lines[0].why; };
    options_.scanning = [&](const std::string&) { scanned = true; };
    auto set = prepare();
    EXPECT_EQ(store_->counts().reads, 0);
    EXPECT_EQ(set->rows(), 50);
    EXPECT_EQ(plan, "samples are read by position");
    EXPECT_FALSE(scanned);
  }
}

TEST_F(PrepareDataset, ScansWhatIsKept) {
  for (const char* cache : {"disk", "ram", "device"}) {
    options_.cache = cache;
    EXPECT_THAT(reason(), HasSubstr(cache));
  }
  auto set = prepare();
  EXPECT_GT(store_->counts().reads, 0);
  EXPECT_NE(set->plan().tier, Tier::none);
}

TEST_F(PrepareDataset, ScansWhereTheRowsThatBelongAreNotKnown) {
  EXPECT_THAT(reason(), IsEmpty());
  options_.source.skip_bad = true;
  EXPECT_EQ(reason(), "bad rows are left out before training");
  options_.source.skip_bad = false;
  options_.split = {.train = 0.5, .val = 0.5, .by = "value"};
  EXPECT_EQ(reason(), "the split is by a column");
}

TEST_F(PrepareDataset, ScansWhereAFieldMayLeaveRowsOut) {
  auto needs = [&](const std::string& min) {
    options_.fields = parse_fields(
        Json::parse(R"({"items": {"json_set": {"column": "packed", "keys":
                    ["a"], "max": 4, "min": )" +
                        min + "}}}",
                    "test"),
        "fields");
    return reason();
  };
  EXPECT_EQ(needs("1"), "field 'items' may leave rows out");
  EXPECT_THAT(needs("0"), IsEmpty());
}

TEST_F(PrepareDataset, ScansRowsWithKeys) {
  EXPECT_EQ(reason_of(std::make_shared<FakeSource>(counting_table({.rows = 5}),
                                                   requests_of(options_))),
            "samples are numbered by their keys");
}

// Else a run that is resumed, with its statistics, would have another
// fingerprint than the one it was saved with.
TEST_F(PrepareDataset, StatisticsOfAnEarlierRunChangeNothing) {
  set_fields(R"({"value": {"columns": ["value"], "standardize": true}})");
  auto fitted = prepare();
  options_.statistics = fitted->statistics();
  EXPECT_EQ(reason(), "field 'value' needs statistics of the data");
  EXPECT_EQ(prepare()->fingerprint(), fitted->fingerprint());
}

TEST_F(PrepareDataset, SamplesHaveTheSameNumbersAndSidesEitherWay) {
  options_.split = {.train = 0.6, .val = 0.3, .seed = 7};
  auto select = [](const Dataset& set) {
    std::vector<SampleId> all;
    for (Side side : {Side::train, Side::val}) {
      std::vector<SampleId> ids(static_cast<std::size_t>(set.rows_on(side)));
      std::iota(ids.begin(), ids.end(), 0);
      set.select(side, ids);
      all.insert(all.end(), ids.begin(), ids.end());
      all.push_back(-1);
    }
    return all;
  };
  std::vector<SampleId> read = select(*prepare());
  options_.cache = "ram";
  EXPECT_EQ(select(*prepare()), read);
}

TEST_F(PrepareDataset, TheJobsFingerprintIsCompared) {
  options_.source.fingerprint = prepare()->fingerprint().substr(0, 16);
  prepare();
  options_.source.fingerprint = "0123456789abcdef";
  try {
    prepare();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "source.fingerprint");
    EXPECT_EQ(error.parts().where, "a fake store");
  }
}

}  // namespace
}  // namespace penstock
