#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/dataset/dataset.h"
#include "penstock/dataset/fake/pictures_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/sources/fake/fake_store.h"

// Pictures that are read by position are kept decoded where that changes no
// byte: each is read and decoded once, whatever is drawn of it.

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kFolder = PENSTOCK_TEST_DATA "/images";
constexpr std::int64_t kEpochs = 3;

struct KeptCase {
  const char* device;
  int workers, readers;
};

void PrintTo(const KeptCase& c, std::ostream* out) {
  *out << c.device << " " << c.workers << " workers " << c.readers
       << " readers";
}

class KeptPictures : public testing::TestWithParam<KeptCase> {
 protected:
  KeptPictures() { use(PicturesDataset(kFolder, 2)); }

  void use(const PicturesDataset& pictures) {
    files_.clear();
    for (const std::vector<FakeCell>& row : pictures.table.rows)
      files_.push_back(std::get<std::string>(row[1]));
    rows_ = std::ssize(files_);
    loading_.batches = kEpochs * ((rows_ + 15) / 16);
  }
  Block block() const {
    Block block;
    block.rows = rows_;
    block.columns.push_back({.type = ColumnType::binary});
    for (const std::string& file : files_) block.columns[0].append_text(file);
    block.columns[0].length = rows_;
    return block;
  }

  /// `epochs`: what is known of them; -1: nothing.
  std::shared_ptr<const Dataset> prepared(const std::string& settings,
                                          std::int64_t epochs) {
    TableDatasetOptions options;
    options.fields = parse_fields(
        Json::parse("{\"x\": {\"image\": {" + settings + "}}}", "test"),
        "fields");
    options.epochs = epochs;
    if (epochs < 0) options.epochs.reset();
    options.workers = GetParam().workers;
    auto store = std::make_unique<FakeStore>(
        std::vector<std::string>{"image"}, block(), requests_of(options.fields),
        FakeStoreTrouble{.chunk_rows = 0});
    store_ = store.get();
    return prepare_dataset(options, std::move(store), *device_);
  }
  std::vector<SeenBatch> seen(const std::string& settings,
                              std::int64_t epochs) {
    set_ = prepared(settings, epochs);
    loading_.workers = GetParam().workers;
    loading_.readers = GetParam().readers;
    return seen_batches(set_, loading_, *device_);
  }
  void expect_the_same_bytes(const std::string& settings, std::int64_t epochs) {
    const std::vector<SeenBatch> expected = seen(settings, 1);
    EXPECT_EQ(seen(settings, epochs), expected);
    EXPECT_THAT(set_->plan().text(), HasSubstr("batches are the same"));
  }
  std::int64_t rows_read() const { return store_->counts().rows; }

  const std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
  LoaderOptions loading_{.tail = Tail::exact, .batch_size = 16, .prefetch = 1};
  std::vector<std::string> files_;
  std::int64_t rows_ = 0;
  std::shared_ptr<const Dataset> set_;
  FakeStore* store_ = nullptr;
};

TEST_P(KeptPictures, HaveTheBytesOfThoseThatAreDecodedInEveryEpoch) {
  for (const std::string& settings : PicturesDataset::kinds_of_settings()) {
    SCOPED_TRACE(settings);
    expect_the_same_bytes(settings, kEpochs);
    expect_the_same_bytes(settings, -1);
  }
  expect_the_same_bytes(
      R"("size": 16, "record_draws": true, "augment": ["trivial_augment_wide",
         {"random_erasing": {"value": "random"}}])",
      kEpochs);
  // In the form that the job asks for: what it keeps is what it makes.
  expect_the_same_bytes(
      R"("size": 16, "store": {"form": "decoded", "max_side": 30})", kEpochs);
}

TEST_P(KeptPictures, DamagedOnesAreMaskedAndSubstitutedAllTheSame) {
  use(PicturesDataset::with_damaged(kFolder));
  for (OnBad on_bad : {OnBad::mask, OnBad::substitute}) {
    loading_.on_bad = on_bad;
    expect_the_same_bytes(R"("size": 12)", kEpochs);
  }
}

TEST_P(KeptPictures, AreReadOnce) {
  const std::int64_t rows = rows_;
  seen(R"("size": 8)", 1);
  EXPECT_EQ(rows_read(), kEpochs * rows);
  EXPECT_THAT(set_->plan().text(), Not(HasSubstr("batches are the same")));
  const std::int64_t looked = std::min<std::int64_t>(rows, 128);
  seen(R"("size": 8)", kEpochs);
  // Those of the next epoch may be read before this one has kept them.
  const std::int64_t ahead = 4 * loading_.batch_size;
  EXPECT_GE(rows_read(), looked + rows);
  EXPECT_LE(rows_read(), looked + rows + ahead);
  seen(R"("size": 8)", -1);
  EXPECT_LE(rows_read(), looked + 2 * rows + ahead);
  EXPECT_THAT(set_->plan().text(), HasSubstr("from the second epoch on"));
}

// What is decoded with fewer bits for each crop is not what is cropped later.
TEST_P(KeptPictures, AreNotWhereOtherBytesWouldCome) {
  seen(R"("size": 8, "parity": "fast")", kEpochs);
  EXPECT_EQ(rows_read(), kEpochs * rows_ + std::min<std::int64_t>(rows_, 128));
  EXPECT_THAT(set_->plan().text(), Not(HasSubstr("batches are the same")));
}

INSTANTIATE_TEST_SUITE_P(
    All, KeptPictures,
    testing::Values(KeptCase{"cpu", 0, 0}, KeptCase{"cpu", 1, 2},
                    KeptCase{"cpu", 2, 0}, KeptCase{"sim", 0, 0},
                    KeptCase{"sim", 1, 0}, KeptCase{"sim", 2, 4}));

}  // namespace
}  // namespace penstock
