#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/loader.h"
#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

constexpr std::size_t kWidth = 8;  // of what is cropped from a strip

/// 400 bytes in which no two places look the same, or too few to be cropped.
std::string strip_of(std::int64_t row, bool bad) {
  if (bad) return "short";
  std::string strip;
  Random random(1, 0, static_cast<std::uint64_t>(row), 0);
  for (int i = 0; i < 400; ++i)
    strip += static_cast<char>('a' + random.below(26));
  return strip;
}

/// A table whose samples each come three times in an epoch, one after the
/// other where nothing is shuffled.
class ThreeTimes final : public Dataset {
 public:
  explicit ThreeTimes(std::shared_ptr<const Dataset> rows)
      : rows_(std::move(rows)) {
    facts_ = rows_->facts();
    for (std::int64_t& count : facts_.on_side) count *= 3;
    facts_.repeats = true;
  }
  const std::string& fingerprint() const override {
    return rows_->fingerprint();
  }
  void select(Side side, std::span<SampleId> ranks) const override {
    for (SampleId& rank : ranks)
      if (rank >= 0) rank /= 3;
    rows_->select(side, ranks);
  }
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override {
    return rows_->open_filler(meters, options);
  }

 private:
  const std::shared_ptr<const Dataset> rows_;
};

/// What was cropped, by epoch, sample, and the bad sample in whose place it
/// came (-1: none): every time that it came.
using Crops = std::map<std::tuple<std::int64_t, SampleId, SampleId>,
                       std::multiset<std::string>>;

class OccurrenceTest : public testing::TestWithParam<int> {
 protected:
  static std::shared_ptr<const Dataset> strips(
      std::int64_t rows, const std::function<bool(std::int64_t)>& bad) {
    Block block;
    block.rows = rows;
    block.columns.push_back({.type = ColumnType::text, .length = rows});
    for (std::int64_t row = 0; row < rows; ++row)
      block.columns[0].append_text(strip_of(row, bad(row)));
    std::vector<Field> fields = {
        {"strip", std::make_shared<Strip>("strip", "strip", kWidth)}};
    auto store =
        std::make_unique<FakeStore>(std::vector<std::string>{"strip"},
                                    std::move(block), requests_of(fields));
    return std::make_shared<IndexedDataset>(IndexedOptions{.fields = fields},
                                            std::move(store));
  }

  Crops crops_of(const std::shared_ptr<const Dataset>& set) {
    Crops crops;
    for (int rank = 0; rank < world_; ++rank) {
      options_.rank = {rank, world_};
      Loader loader(set, options_, *device_);
      while (std::optional<Batch> batch = loader.next()) {
        batch->wait();
        add(*batch, crops);
      }
    }
    return crops;
  }

  static void add(const Batch& batch, Crops& crops) {
    const auto* bytes =
        reinterpret_cast<const char*>(batch.tensors()[0].view.data);
    std::map<std::int64_t, SampleId> in_place_of;
    for (const RejectedSample& bad : batch.rejected())
      in_place_of[bad.row] = bad.sample;
    for (std::size_t row = 0; row < batch.ids().size(); ++row) {
      auto found = in_place_of.find(static_cast<std::int64_t>(row));
      SampleId bad = found == in_place_of.end() ? -1 : found->second;
      crops[{batch.at().epoch, batch.ids()[row], bad}].insert(
          {bytes + row * kWidth, kWidth});
    }
  }

  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  LoaderOptions options_{.tail = Tail::exact,
                         .batch_size = 30,
                         .workers = GetParam(),
                         .on_bad = OnBad::substitute};
  int world_ = 1;
};

TEST_P(OccurrenceTest, ASubstituteDrawsOtherNumbersThanInItsOwnPlace) {
  auto set = strips(90, [](std::int64_t row) { return row == 7; });
  options_.batches = 3 * 20;  // epochs of three steps
  Crops crops = crops_of(set);
  int substitutes = 0, same = 0;
  for (const auto& [at, strips] : crops) {
    auto [epoch, sample, bad] = at;
    if (bad < 0) continue;
    ASSERT_EQ(bad, 7);
    ++substitutes;
    const auto& own = crops.at({epoch, sample, -1});
    same += own == strips;
  }
  EXPECT_EQ(substitutes, 20) << "one in each epoch";
  EXPECT_LE(same, 1);
}

TEST_P(OccurrenceTest, ASubstituteDrawsTheSameOnAnyNumberOfRanks) {
  auto set = strips(90, [](std::int64_t row) { return row == 7; });
  options_.batches = 3 * 4;
  Crops crops = crops_of(set);
  world_ = 4;
  EXPECT_EQ(crops_of(set), crops);
  world_ = 1;
  options_.workers = 0;
  EXPECT_EQ(crops_of(set), crops) << "and on one thread";
}

TEST_P(OccurrenceTest, ASampleThatComesThreeTimesDrawsThreeTimes) {
  auto set = std::make_shared<ThreeTimes>(
      strips(60, [](std::int64_t) { return false; }));
  options_.batches = 6;  // one epoch
  Crops crops = crops_of(set);
  ASSERT_EQ(crops.size(), 60u);
  int others = 0;
  for (const auto& [at, strips] : crops) {
    ASSERT_EQ(strips.size(), 3u);
    others += std::set(strips.begin(), strips.end()).size() == 3;
  }
  EXPECT_GE(others, 55);
  world_ = 4;
  EXPECT_EQ(crops_of(set), crops) << "the same on four ranks";
  world_ = 1;
  options_.workers = 0;
  EXPECT_EQ(crops_of(set), crops) << "the same on one thread";
  options_.start = {0, 5};
  options_.batches = 1;
  for (const auto& [at, strips] : crops_of(set))
    for (const std::string& strip : strips)
      EXPECT_TRUE(crops.at(at).contains(strip)) << "the same after a restart";
}

TEST_P(OccurrenceTest, ABadSampleThatComesThreeTimesHasThreeSubstitutes) {
  auto set = std::make_shared<ThreeTimes>(
      strips(2'000, [](std::int64_t row) { return row == 5; }));
  options_.batch_size = 1'000;
  options_.batches = 6;  // one epoch
  std::multiset<std::string> drawn;
  for (const auto& [at, strips] : crops_of(set))
    if (std::get<2>(at) == 5) drawn.insert(strips.begin(), strips.end());
  EXPECT_EQ(drawn.size(), 3u);
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 3u);
}

TEST_P(OccurrenceTest, AFunctionOfRowsSeesTheSameRows) {
  auto three = std::make_shared<ThreeTimes>(
      strips(60, [](std::int64_t) { return false; }));
  options_.batches = 6;
  Crops crops = crops_of(three);
  RowFunction copy;
  copy.layout = layout_of_tensors(
      {{.name = "strip", .dtype = Dtype::uint8, .row_shape = {kWidth}}});
  copy.call = [](const RowCall& call) {
    std::copy_n(call.in[0].data, call.in[0].bytes(), call.out[0].data);
  };
  auto mapped =
      std::make_shared<FunctionDataset>(three, std::move(copy), *device_);
  EXPECT_EQ(crops_of(mapped), crops);
}

INSTANTIATE_TEST_SUITE_P(Workers, OccurrenceTest, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
