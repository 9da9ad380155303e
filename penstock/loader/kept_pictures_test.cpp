#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "penstock/base/fake/test_folder.h"
#include "penstock/base/host_limits.h"
#include "penstock/dataset/dataset.h"
#include "penstock/dataset/fake/pictures_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/sources/fake/fake_store.h"

// Pictures that are read by position are kept decoded where that changes no
// byte: each is read and decoded once, whatever is drawn of it.

// Clang 14's LeakSanitizer takes what glibc keeps of a plugin's thread-local
// memory for a block of its own, and ends the process by a fault. It does
// without here: what only such memory points to then counts as a leak.
extern "C" const char* __lsan_default_options() { return "use_tls=0"; }

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
    options.ranks = loading_.rank.world;
    options.source.skip_bad = scanned_;
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
    EXPECT_THAT(set_->plan().text(), HasSubstr("batches stay the same"));
  }
  std::int64_t rows_read() const { return store_->counts().rows; }
  /// What is read where rows are looked at first, and kept in the epochs from
  /// `first` to `last`; more where a row is read ahead before it is kept.
  std::int64_t rows_to_read(const std::vector<SeenBatch>& batches, int first,
                            int last) const {
    std::int64_t read = std::min<std::int64_t>(rows_, 128);
    std::set<SampleId> kept;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const auto epoch = static_cast<std::int64_t>(i) / ((rows_ + 15) / 16);
      for (SampleId id : batches[i].ids) {
        if (id < 0 || kept.count(id) > 0) continue;
        ++read;
        if (epoch >= first && epoch <= last) kept.insert(id);
      }
    }
    return read;
  }

  const std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
  LoaderOptions loading_{.tail = Tail::exact, .batch_size = 16, .prefetch = 1};
  std::vector<std::string> files_;
  std::int64_t rows_ = 0;
  std::shared_ptr<const Dataset> set_;
  FakeStore* store_ = nullptr;
  bool scanned_ = false;  // all files are read first, and kept
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
  EXPECT_THAT(set_->plan().text(), Not(HasSubstr("batches stay the same")));
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

// Each rank has other rows in every epoch, and keeps what it has had.
TEST_P(KeptPictures, AreKeptByEachOfTwoRanks) {
  constexpr std::int64_t kOfTwo = 7;
  loading_.batches = kOfTwo * ((rows_ + 15) / 16);
  const std::int64_t ahead = 4 * loading_.batch_size;
  for (int rank : {0, 1}) {
    loading_.rank = {.rank = rank, .world = 2};
    expect_the_same_bytes(R"("size": 9, "record_draws": true)", kOfTwo);
    const std::vector<SeenBatch> batches = seen(R"("size": 9)", kOfTwo);
    const std::int64_t read = rows_to_read(batches, 0, 2);
    EXPECT_GE(rows_read(), read);
    EXPECT_LE(rows_read(), read + ahead);
    expect_the_same_bytes(R"("size": 9)", -1);
    EXPECT_NEAR(static_cast<double>(rows_read()),
                static_cast<double>(rows_to_read(batches, 2, kOfTwo)),
                static_cast<double>(ahead));
  }
}

TEST_P(KeptPictures, AreKeptBesideTheirFilesWhereAllAreReadFirst) {
  scanned_ = true;
  for (const std::string& settings : PicturesDataset::kinds_of_settings()) {
    SCOPED_TRACE(settings);
    expect_the_same_bytes(settings, kEpochs);
    expect_the_same_bytes(settings, -1);
  }
  ASSERT_NE(set_->facts().scan, nullptr);
  const auto& table = static_cast<const TableDataset&>(*set_);
  ASSERT_NE(table.larger(), nullptr);
  for (SampleId id = 0; id < rows_; ++id) EXPECT_TRUE(table.larger()->has(id));
  loading_.rank = {.rank = 1, .world = 2};
  loading_.batches = 5 * ((rows_ + 15) / 16);
  expect_the_same_bytes(R"("size": 9)", 5);
}

TEST_P(KeptPictures, DamagedOnesAreMaskedBesideTheirFilesAllTheSame) {
  use(PicturesDataset::with_damaged(kFolder));
  scanned_ = true;
  for (OnBad on_bad : {OnBad::mask, OnBad::substitute}) {
    loading_.on_bad = on_bad;
    expect_the_same_bytes(R"("size": 12)", kEpochs);
  }
}

// A run that is resumed near its end would keep them for nobody.
TEST_P(KeptPictures, AreNotKeptForEpochsThatDoNotCome) {
  loading_.start = {.epoch = 1};
  loading_.batches = 2 * ((rows_ + 15) / 16);
  const std::vector<SeenBatch> expected = seen(R"("size": 8)", 1);
  EXPECT_EQ(seen(R"("size": 8)", kEpochs), expected);
  EXPECT_EQ(rows_read(), 2 * rows_ + std::min<std::int64_t>(rows_, 128));
}

// What is decoded with fewer bits for each crop is not what is cropped later.
TEST_P(KeptPictures, AreNotWhereOtherBytesWouldCome) {
  seen(R"("size": 8, "parity": "fast")", kEpochs);
  EXPECT_EQ(rows_read(), kEpochs * rows_ + std::min<std::int64_t>(rows_, 128));
  EXPECT_THAT(set_->plan().text(), Not(HasSubstr("batches stay the same")));
}

/// What a plan says of a tier that it has chosen.
std::size_t host_bytes(const TierPlan& plan) {
  return std::ranges::find(plan.lines, plan.tier, &TierPlan::Line::tier)
      ->host_bytes;
}

// A mapped file is read again for what is not kept, and wants memory for that.
TEST(KeptPicturesOfAStore, LeaveRoomForItsFile) {
  const std::unique_ptr<Device> device = open_for_test("cpu");
  const TestFolder folder;
  PicturesDataset pictures(kFolder, 24);
  pictures.files = true;
  pictures.settings = R"("size": 8)";
  pictures.table.version = "1";  // a later run knows its rows
  pictures.options.store_dir = folder.path("stores");
  const auto prepared = [&](const char* cache, std::int64_t epochs) {
    pictures.options.cache = cache;
    pictures.options.epochs = epochs;
    return pictures.prepare("host", *device);
  };
  prepared("disk", 1);
  const std::size_t others = host_bytes(prepared("auto", 1)->plan());
  const auto all = prepared("auto", 9);
  ASSERT_EQ(all->plan().tier, Tier::disk);
  ASSERT_NE(all->larger(), nullptr);
  EXPECT_THAT(all->plan().text(), HasSubstr("which fits in memory"));
  // As if they shared the machine with so many that a half fits.
  const std::size_t half = others + (host_bytes(all->plan()) - others) / 2;
  const HostLimits host = read_host_limits();
  if (!host.memory_free) GTEST_SKIP() << "free memory is unknown";
  pictures.options.ranks_here = static_cast<int>(
      0.8 * static_cast<double>(*host.memory_free) / static_cast<double>(half));
  const auto part = prepared("auto", 9);
  ASSERT_EQ(part->plan().tier, Tier::disk);
  EXPECT_THAT(part->plan().text(),
              HasSubstr(" rows in addition to the files, "));
  ASSERT_NE(part->larger(), nullptr);
  const LoaderOptions loading{
      .batch_size = 64, .workers = 2, .batches = 3 * 20};
  EXPECT_EQ(seen_batches(part, loading, *device),
            seen_batches(all, loading, *device));
}

INSTANTIATE_TEST_SUITE_P(
    All, KeptPictures,
    testing::Values(KeptCase{"cpu", 0, 0}, KeptCase{"cpu", 1, 2},
                    KeptCase{"cpu", 2, 0}, KeptCase{"cpu", 8, 2},
                    KeptCase{"sim", 0, 0}, KeptCase{"sim", 1, 0},
                    KeptCase{"sim", 2, 4}));

}  // namespace
}  // namespace penstock
