#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "penstock/base/error.h"
#include "penstock/base/fake/test_folder.h"
#include "penstock/dataset/dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/sources/fake/fake_source.h"
#include "penstock/sources/fake/fake_store.h"

// Sounds that are decoded before the first batch: what decoding alone shows is
// a bad sample of its batch, as where files are read in the order of batches.

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kRows = 1200;  // two in a thousand are allowed
constexpr std::int64_t kNan = 7, kCut = 700;

constexpr const char* kSettings[] = {
    R"("store": "auto")", R"("mel": {"n_mels": 8})",
    R"("augment": [{"gain": {}}])",
    R"("mel": {"n_mels": 8}, "augment": [{"spec_augment": {"time_masks": 1,
       "time_width": 1}}])",
    R"("store": "encoded")"};

class KeptSounds : public testing::TestWithParam<TierCase> {
 protected:
  KeptSounds() {
    const std::string folder = PENSTOCK_TEST_DATA "/sound/";
    const std::string wav = TestFolder::read(folder + "mono.wav");
    std::string nan = wav;
    const float none = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(nan.data() + nan.find("data") + 8 + 4 * 2000, &none, 4);
    const std::string flac = TestFolder::read(folder + "stereo.flac");
    files_.write("good.wav", wav);
    files_.write("nan.wav", nan);
    files_.write("cut.flac", flac.substr(0, flac.size() / 3));
    loading_ = {.tail = Tail::exact,
                .batch_size = 64,
                .workers = GetParam().workers,
                .batches = 2 * ((kRows + 63) / 64)};
    options_.store_dir = files_.path("stores");
  }

  /// A device keeps nothing that the host finishes for every batch.
  static std::span<const char* const> settings() {
    const std::span<const char* const> all = kSettings;
    return GetParam().kept_on_sim() ? all.first(all.size() - 1) : all;
  }
  static std::string name_of_row(std::int64_t row) {
    return row == kNan ? "nan.wav" : row == kCut ? "cut.flac" : "good.wav";
  }
  void use_fields(const std::string& settings) {
    options_.fields = parse_fields(
        Json::parse(R"({"x": {"audio": {"column": "sound", "seconds": 0.02,
                        "folder": ")" +
                        files_.path("") + "\", " + settings + "}}}",
                    "test"),
        "fields");
  }
  /// Those of a table by key, all of which are read before the first batch.
  std::shared_ptr<const TableDataset> table(bool scrambled = false) {
    FakeTable table;
    table.version = "1";
    table.schema.columns = {
        {.name = "id", .declared = "int64", .primary_key = true},
        {.name = "sound", .declared = "text"}};
    for (std::int64_t i = 0; i < kRows; ++i) {
      const std::int64_t row = scrambled ? i * 7 % kRows : i;
      table.rows.push_back({row, name_of_row(row)});
    }
    options_.cache = GetParam().cache;
    options_.workers = GetParam().workers;
    auto source = std::make_unique<FakeSource>(table, requests_of(options_));
    FakeSource* made = source.get();
    auto set = TableDataset::prepare(options_, std::move(source), *device_);
    scanned_ = made->counts().rows;
    return set;
  }
  /// The same rows, read in the order of batches.
  std::vector<SeenBatch> read_by_batch() {
    Block rows;
    rows.rows = kRows;
    rows.columns.push_back({.type = ColumnType::text});
    for (std::int64_t i = 0; i < kRows; ++i)
      rows.columns[0].append_text(name_of_row(i));
    options_.cache = "none";
    std::unique_ptr<Device> cpu = open_device({.kind = "cpu"});
    auto set = prepare_dataset(
        options_,
        std::make_unique<FakeStore>(std::vector<std::string>{"sound"},
                                    std::move(rows), requests_of(options_)),
        *cpu);
    EXPECT_EQ(set->facts().scan, nullptr);
    LoaderOptions loading = loading_;
    loading.workers = 0;
    return seen_batches(set, loading, *cpu);
  }
  std::vector<SeenBatch> seen(const std::shared_ptr<const Dataset>& set) {
    return seen_batches(set, loading_, *device_);
  }

  const TestFolder files_;
  const std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
  TableDatasetOptions options_;
  LoaderOptions loading_;
  std::int64_t scanned_ = 0;
};

std::int64_t rejected(const std::vector<SeenBatch>& batches) {
  std::int64_t count = 0;
  for (const SeenBatch& batch : batches) count += std::ssize(batch.rejected);
  return count;
}

TEST_P(KeptSounds, DamagedOnesAreMaskedAndSubstitutedAsWhereFilesAreRead) {
  for (OnBad on_bad : {OnBad::mask, OnBad::substitute})
    for (const char* settings : settings()) {
      SCOPED_TRACE(settings);
      loading_.on_bad = on_bad;
      use_fields(settings);
      const auto expected = read_by_batch();
      EXPECT_EQ(rejected(expected), 4);
      EXPECT_EQ(seen(table()), expected);
    }
}

TEST_P(KeptSounds, DamagedOnesStopTheirBatchAndAreNamed) {
  for (const char* settings : settings()) {
    SCOPED_TRACE(settings);
    use_fields(settings);
    const auto set = table();
    loading_.shuffle = false;
    try {
      seen(set);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::transform);
      EXPECT_EQ(error.parts().code, "data.bad_sample");
      EXPECT_THAT(error.what(), HasSubstr("sample 7, sound"));
      EXPECT_THAT(error.what(), HasSubstr("sample 2000 is NaN"));
    }
  }
}

// What a scan leaves out is what it sees without decoding.
TEST_P(KeptSounds, SkippingBadRowsLeavesThemToTheirBatches) {
  options_.source.skip_bad = true;
  loading_.on_bad = OnBad::mask;
  use_fields(kSettings[0]);
  files_.write("cut.flac", "no sound at all");
  const auto set = table();
  EXPECT_EQ(set->facts().scan->bad_rows, 1);
  EXPECT_EQ(rejected(seen(set)), 2);
}

TEST_P(KeptSounds, RowsThatArriveInAnotherOrderHaveTheSameBadOnes) {
  loading_.on_bad = OnBad::substitute;
  use_fields(kSettings[1]);
  EXPECT_EQ(seen(table(true)), seen(table()));
}

TEST_P(KeptSounds, AStoreKnowsItsBadOnes) {
  if (GetParam().cache != std::string("disk")) GTEST_SKIP();
  loading_.on_bad = OnBad::mask;
  use_fields(kSettings[0]);
  const auto first = seen(table());
  EXPECT_EQ(scanned_, kRows);
  EXPECT_EQ(seen(table()), first);
  EXPECT_EQ(scanned_, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Tiers, KeptSounds,
    testing::Values(TierCase{"cpu", "ram", 0}, TierCase{"cpu", "ram", 1},
                    TierCase{"cpu", "ram", 2}, TierCase{"cpu", "ram", 8},
                    TierCase{"cpu", "none", 0}, TierCase{"cpu", "none", 8},
                    TierCase{"cpu", "disk", 2}, TierCase{"sim", "ram", 1},
                    TierCase{"sim", "device", 0},
                    TierCase{"sim", "device", 8}));

}  // namespace
}  // namespace penstock
