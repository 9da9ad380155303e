#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"

// Rows that are drawn with replacement, by a column, and a part of the rows.

namespace penstock {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

class DrawnTest : public testing::TestWithParam<TierCase> {
 protected:
  DrawnTest() {
    std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '-');
    dir_ = std::filesystem::path(testing::TempDir()) /
           ("drawn-" + std::to_string(::getpid()) + "-" + name);
    std::filesystem::remove_all(dir_);
    words_.table.version = "1";
    words_.add_number();
    words_.add_strip();
    words_.options.cache = GetParam().cache;
    words_.options.store_dir = dir_.string();
    words_.options.split = {.train = 0.8, .val = 0.2};
    options_ = {.seed = 4,
                .tail = Tail::pad,
                .batch_size = 32,
                .workers = GetParam().workers,
                .batches = 30};
  }
  ~DrawnTest() override { std::filesystem::remove_all(dir_); }

  std::vector<SeenBatch> batches() {
    return seen_batches(words_.prepare(*device_), options_, *device_);
  }
  static std::vector<SampleId> ids(const std::vector<SeenBatch>& batches) {
    std::vector<SampleId> ids;
    for (const SeenBatch& batch : batches)
      for (SampleId id : batch.ids)
        if (id >= 0) ids.push_back(id);
    return ids;
  }
  std::string refused() {
    try {
      words_.prepare(*device_);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  /// Of the rows, in a tier that needs no other case.
  std::vector<SeenBatch> as_in_memory() {
    WordsDataset same = words_;
    same.options.cache = "ram";
    LoaderOptions options = options_;
    options.workers = 0;
    auto cpu = open_for_test("cpu");
    return seen_batches(same.prepare(*cpu), options, *cpu);
  }

  std::filesystem::path dir_;
  WordsDataset words_;
  LoaderOptions options_;
  std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
};

TEST_P(DrawnTest, RowsComeInProportionToTheirWeights) {
  words_.options.drawing = {.column = "number"};  // row i has weight i
  options_.batches = 200;
  const std::vector<SeenBatch> seen = batches();
  EXPECT_EQ(seen, as_in_memory());
  const std::vector<SampleId> drawn = ids(seen);
  EXPECT_EQ(std::ranges::count(drawn, 0), 0) << "its weight is 0";
  const auto upper =
      std::ranges::count_if(drawn, [](SampleId id) { return id >= 150; });
  // Three quarters of the weight lie on the upper half.
  EXPECT_NEAR(static_cast<double>(upper) / static_cast<double>(drawn.size()),
              0.75, 0.05);
}

TEST_P(DrawnTest, ARowThatComesAgainIsAugmentedAnew) {
  for (auto& row : words_.table.rows)
    row[3] = row[0] == FakeCell(std::int64_t{7}) ? 1.0 : 0.0;
  words_.options.split = {};
  words_.options.drawing = {.column = "number"};
  options_.batches = 2;
  const std::vector<SeenBatch> seen = batches();
  EXPECT_THAT(ids(seen), Each(7));
  std::set<std::string> strips;
  const std::string& bytes = seen[0].bytes.at("strip");
  const std::size_t each = bytes.size() / seen[0].ids.size();
  for (std::size_t at = 0; at < bytes.size(); at += each)
    strips.insert(bytes.substr(at, each));
  EXPECT_GT(strips.size(), 3u) << "a crop of 8 letters, drawn each time";
}

TEST_P(DrawnTest, EachValueComesEquallyOften) {
  // 290 rows "common", 10 "rare", of which some are on the other side.
  for (std::size_t i = 0; i < words_.table.rows.size(); ++i)
    words_.table.rows[i][1] = std::string(i < 290 ? "common" : "rare");
  words_.options.drawing = {.column = "text", .balance = true};
  options_.batches = 100;
  const std::vector<SeenBatch> seen = batches();
  EXPECT_EQ(seen, as_in_memory());
  const std::vector<SampleId> drawn = ids(seen);
  const auto rare =
      std::ranges::count_if(drawn, [](SampleId id) { return id >= 290; });
  EXPECT_NEAR(static_cast<double>(rare) / static_cast<double>(drawn.size()),
              0.5, 0.06);
}

TEST_P(DrawnTest, ValidationTakesEachRowOnce) {
  words_.options.drawing = {.column = "number"};
  options_.side = Side::val;
  options_.shuffle = false;
  options_.tail = Tail::exact;
  auto set = words_.prepare(*device_);
  options_.batches = steps_per_epoch(order_of(options_, *set));
  std::vector<SampleId> seen = ids(seen_batches(set, options_, *device_));
  EXPECT_EQ(std::ssize(seen), set->rows_on(Side::val));
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

TEST_P(DrawnTest, ItGoesOnAtAnyBatchAndOnAnyNumberOfRanks) {
  words_.options.drawing = {.column = "number"};
  const std::vector<SeenBatch> all = batches();
  auto set = words_.prepare(*device_);
  const std::int64_t epoch = steps_per_epoch(order_of(options_, *set));
  for (std::int64_t step : {1, 7, 12}) {
    LoaderOptions rest = options_;
    rest.start = {.epoch = step / epoch, .step = step % epoch};
    rest.batches = 5;
    const auto seen = seen_batches(set, rest, *device_);
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), all.begin() + step));
  }
  std::vector<std::vector<SampleId>> together(5);
  for (int rank : {0, 1, 2}) {
    LoaderOptions part = options_;
    part.rank = {.rank = rank, .world = 3};
    part.batches = 5;
    const auto seen = seen_batches(set, part, *device_);
    for (std::size_t b = 0; b < seen.size(); ++b)
      std::ranges::copy(seen[b].ids, std::back_inserter(together[b]));
  }
  for (std::size_t b = 0; b < together.size(); ++b)
    EXPECT_EQ(together[b], all[b].ids);
}

TEST_P(DrawnTest, MappedRowsAreDrawnAsTheyAre) {
  words_.options.drawing = {.column = "number"};
  auto set = words_.prepare(*device_);
  RowFunction function{
      .layout = layout_of_tensors({{.name = "same", .row_shape = {1}}}),
      .fingerprint = "same",
      .call = [](const RowCall& call) {
        std::memcpy(call.out[0].data, call.in[0].data, call.out[0].bytes());
      }};
  auto mapped = std::make_shared<FunctionDataset>(set, function, *device_);
  options_.batches = 5;
  const auto seen = seen_batches(mapped, options_, *device_);
  EXPECT_EQ(ids(seen), ids(seen_batches(set, options_, *device_)));
}

TEST_P(DrawnTest, WeightsAreInTheStoreOfASecondRun) {
  words_.options.drawing = {.column = "number"};
  const std::vector<SeenBatch> first = batches();
  EXPECT_EQ(batches(), first);
  words_.options.drawing = {.column = "text", .balance = true};
  EXPECT_NE(batches(), first) << "by another column: another store";
}

TEST_P(DrawnTest, AWeightThatIsNoneNamesItsRow) {
  words_.options.drawing = {.column = "number"};
  words_.options.fields.erase(words_.options.fields.begin());  // of "number"
  words_.table.rows[33][3] = -1.0;
  EXPECT_THAT(refused(), AllOf(HasSubstr("33"), HasSubstr("'number'"),
                               HasSubstr("found -1.0"),
                               HasSubstr("a finite number, 0 or more")));
  for (double wrong : {std::nan(""), HUGE_VAL}) {
    words_.table.rows[33][3] = wrong;
    EXPECT_THAT(refused(), AllOf(HasSubstr("33"), HasSubstr("'number'")));
  }
  words_.table.rows[33][3] = FakeCell();
  EXPECT_THAT(refused(), HasSubstr("not usable"));
  words_.options.drawing = {.column = "text"};
  EXPECT_THAT(refused(), AllOf(HasSubstr("'text' is text, expected numbers"),
                               HasSubstr("loader.balance")));
  for (auto& row : words_.table.rows) row[3] = 0.0;
  words_.options.drawing = {.column = "number"};
  EXPECT_THAT(refused(), HasSubstr("are zero"));
}

TEST_P(DrawnTest, SoManyRowsOfEachSideAreUsed) {
  words_.options.split.most = 25;
  auto set = words_.prepare(*device_);
  EXPECT_EQ(set->rows_on(Side::train), 25);
  EXPECT_EQ(set->rows_on(Side::val), 25);
  EXPECT_EQ(set->rows(), 50) << "the others are not kept";
  options_.batches = 3;
  EXPECT_EQ(seen_batches(set, options_, *device_), as_in_memory());
  const std::string fingerprint = set->fingerprint();
  EXPECT_EQ(words_.prepare(*device_)->fingerprint(), fingerprint);
  words_.options.split.most = 26;
  EXPECT_NE(words_.prepare(*device_)->fingerprint(), fingerprint);
}

TEST_P(DrawnTest, AShareOfTheRowsIsAPartOfALargerShare) {
  std::set<std::int64_t> some;
  for (double share : {0.1, 0.5}) {
    words_.options.split.share = share;
    auto set = words_.prepare(*device_);
    EXPECT_NEAR(static_cast<double>(set->rows()), 300 * share, 30);
    std::set<std::int64_t> keys;
    for (std::int64_t row = 0; row < set->rows(); ++row)
      keys.insert(set->keys().integer(row));
    EXPECT_TRUE(std::ranges::includes(keys, some));
    some = keys;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Places, DrawnTest,
    testing::Values(TierCase{"cpu", "ram", 0}, TierCase{"cpu", "ram", 8},
                    TierCase{"cpu", "disk", 1}, TierCase{"cpu", "none", 2},
                    TierCase{"sim", "device", 2}, TierCase{"sim", "none", 0},
                    TierCase{"sim", "auto", 8}));

}  // namespace
}  // namespace penstock
