#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/transforms/fake/noisy.h"

// Rows that are kept in a store on disk, from run to run.

namespace penstock {
namespace {

using testing::HasSubstr;

struct Case {
  const char* device;
  int workers;
  ColumnType key;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.device << " " << c.workers << " workers " << name_of(c.key);
}

class TableStoreTest : public testing::TestWithParam<Case> {
 protected:
  TableStoreTest() {
    std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '-');
    dir_ = std::filesystem::path(testing::TempDir()) /
           ("stores-" + std::to_string(::getpid()) + "-" + name);
    std::filesystem::remove_all(dir_);
    words_.table.version = "1";
    words_.table.key = GetParam().key;
    for (std::size_t i = 0; i < words_.table.rows.size(); ++i)
      words_.table.rows[i][0] =
          counting_key(GetParam().key, static_cast<std::int64_t>(i));
    for (Field& field :
         parse_fields(Json::parse(R"({"number": {"columns": ["number"],
                                        "standardize": true}})",
                                  "test"),
                      "fields"))
      words_.options.fields.push_back(std::move(field));
    words_.add_letters(Lengths::padded);
    words_.add_strip();
    words_.add("noisy", std::make_shared<Noisy>("noisy", "number"));
    words_.options.cache = "disk";
    words_.options.store_dir = dir_.string();
    words_.options.split = {.train = 0.7, .val = 0.3};
    options_ = {
        .tail = Tail::pad, .batch_size = 32, .workers = GetParam().workers};
    options_.batches = 15;
  }
  ~TableStoreTest() override { std::filesystem::remove_all(dir_); }

  std::shared_ptr<const TableDataset> prepare() {
    auto source = std::make_unique<FakeSource>(
        words_.table, requests_of(words_.options), trouble_);
    FakeSource* made = source.get();
    set_ = TableDataset::prepare(words_.options, std::move(source), *device_);
    read_ = made->counts().rows;
    return set_;
  }

  std::vector<SeenBatch> batches() {
    return seen_batches(set_, options_, *device_);
  }

  std::vector<std::filesystem::path> stores() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(dir_))
      found.push_back(entry.path());
    return found;
  }
  /// Changes a byte of the only store.
  void damage(std::uintmax_t at) const {
    std::fstream file(stores().at(0),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    char byte = 0;
    file.get(byte);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
  }

  std::string bytes_of_store() const {
    return real_files().read(stores().at(0));
  }
  /// Where an array begins in the only store; "runs/": that of the first field
  /// that has runs.
  std::uintmax_t place_of(std::string array) const {
    const Store intact(real_files(), stores().at(0));
    for (int field = 0; array.ends_with('/') && field < 9; ++field)
      if (intact.has(array + std::to_string(field)))
        array += std::to_string(field);
    return static_cast<std::uintmax_t>(intact.array(array).data() -
                                       intact.array("rows").data());
  }

  std::unique_ptr<Device> device_ =
      open_device({.kind = GetParam().device,
                   .virtual_time = std::string(GetParam().device) == "sim"});
  std::filesystem::path dir_;
  WordsDataset words_;
  FakeTrouble trouble_;
  LoaderOptions options_;
  std::shared_ptr<const TableDataset> set_;
  std::int64_t read_ = 0;
};

TEST_P(TableStoreTest, TheSecondRunMakesNoScan) {
  auto first = prepare();
  EXPECT_EQ(read_, 300);
  EXPECT_EQ(first->plan().tier, Tier::disk);
  std::vector<SeenBatch> seen = batches();
  auto second = prepare();
  EXPECT_EQ(read_, 0);
  EXPECT_EQ(batches(), seen);
  EXPECT_EQ(second->fingerprint(), first->fingerprint());
  EXPECT_EQ(second->statistics(), first->statistics());
  EXPECT_EQ(second->rows_on(Side::train), first->rows_on(Side::train));
  EXPECT_EQ(second->facts().longest, first->facts().longest);
  for (SampleId id : {0, 17, 299})
    EXPECT_EQ(second->keys().shown(id), first->keys().shown(id));
  EXPECT_THAT(second->plan().text(), HasSubstr("* disk: "));
}

TEST_P(TableStoreTest, HasTheBytesThatRamHas) {
  words_.options.cache = "ram";
  prepare();
  EXPECT_FALSE(std::filesystem::exists(dir_));
  std::vector<SeenBatch> seen = batches();
  const std::string fingerprint = set_->fingerprint();
  words_.options.cache = "disk";
  prepare();
  EXPECT_EQ(batches(), seen);
  EXPECT_EQ(set_->fingerprint(), fingerprint);
}

TEST_P(TableStoreTest, ThePlanSaysHowLargeTheFileWillBe) {
  for (int run = 0; run < 2; ++run) {
    prepare();
    const std::uintmax_t bytes = std::filesystem::file_size(stores()[0]);
    const std::size_t said = set_->plan().lines[2].disk_bytes;
    EXPECT_GE(bytes, said);
    EXPECT_LE(bytes, said + 40'000) << "the beginnings of nine arrays";
  }
}

TEST_P(TableStoreTest, OtherTiersTakeTheirRowsFromAStoreThatIsThere) {
  if (device_->memory_kind() != MemoryKind::cpu)  // it is finished on the host
    std::erase_if(words_.options.fields,
                  [](const Field& field) { return field.name == "text"; });
  prepare();
  std::vector<SeenBatch> seen = batches();
  for (const char* cache : {"ram", "device", "auto"}) {
    words_.options.cache = cache;
    prepare();
    EXPECT_EQ(read_, 0) << cache;
    EXPECT_EQ(batches(), seen) << cache;
    EXPECT_NE(set_->plan().tier, Tier::disk);
  }
  words_.options.cache = "none";
  prepare();
  EXPECT_GT(read_, 0);
}

TEST_P(TableStoreTest, ADamagedStoreIsNotCopiedToAnotherTier) {
  words_.options.fields.resize(1);
  prepare();
  std::vector<SeenBatch> seen = batches();
  damage(40);
  words_.options.cache = "ram";
  prepare();
  EXPECT_EQ(read_, 300);
  EXPECT_EQ(batches(), seen);
}

TEST_P(TableStoreTest, AConditionThatChangesWithTimeIsScannedEachTime) {
  words_.options.source.where = "recorded > date('NOW', '-30 days')";
  prepare();
  prepare();
  EXPECT_EQ(read_, 300);
}

/// Where neither memory nor the source's own order decides it, the scan writes
/// values to files that have no name.
TEST_P(TableStoreTest, AScanThatSpillsGivesTheSameBatches) {
  std::reverse(words_.table.rows.begin() + 20, words_.table.rows.end() - 30);
  for (const char* cache : {"ram", "disk", "none"}) {
    words_.options.cache = cache;
    words_.options.scan_bytes.reset();
    prepare();
    EXPECT_EQ(set_->plan().scan->spilled, 0u);
    const std::size_t held = set_->plan().scan->bytes;
    std::vector<SeenBatch> seen = batches();
    const std::string fingerprint = set_->fingerprint();
    std::filesystem::remove_all(dir_);
    words_.options.scan_bytes = held - 1000;
    prepare();
    EXPECT_GT(set_->plan().scan->spilled, 0u);
    EXPECT_EQ(set_->fingerprint(), fingerprint);
    EXPECT_EQ(batches(), seen) << cache;
    EXPECT_EQ(stores().size(), std::string(cache) == "disk" ? 1u : 0u);
    std::filesystem::remove_all(dir_);
  }
}

TEST_P(TableStoreTest, RowsThatChangedAreScannedAnew) {
  prepare();
  words_.table.version = "2";
  words_.table.rows[5][3] = 99.0;
  const std::string fingerprint = set_->fingerprint();
  prepare();
  EXPECT_EQ(read_, 300);
  EXPECT_NE(set_->fingerprint(), fingerprint);
  EXPECT_EQ(stores().size(), 2u);
}

TEST_P(TableStoreTest, ASourceWithoutVersionsIsScannedEachTime) {
  words_.table.version.clear();
  prepare();
  words_.table.rows[5][3] = 99.0;
  prepare();
  EXPECT_EQ(read_, 300);
  EXPECT_EQ(stores().size(), 1u);
}

TEST_P(TableStoreTest, OtherFieldsAndSplitsHaveStoresOfTheirOwn) {
  prepare();
  words_.options.split.seed = 7;
  prepare();
  EXPECT_EQ(read_, 300);
  words_.options.fields.pop_back();
  prepare();
  EXPECT_EQ(read_, 300);
  EXPECT_EQ(stores().size(), 3u);
}

TEST_P(TableStoreTest, RanksThatStartTogetherMakeOneScan) {
  std::atomic<std::int64_t> read{0};
  std::vector<std::string> fingerprints(4);
  std::vector<std::thread> ranks;
  for (std::string& fingerprint : fingerprints)
    ranks.emplace_back([&] {
      auto source = std::make_unique<FakeSource>(words_.table,
                                                 requests_of(words_.options));
      FakeSource* made = source.get();
      auto device = open_device({.kind = "cpu"});
      auto set =
          TableDataset::prepare(words_.options, std::move(source), *device);
      read += made->counts().rows;
      fingerprint = set->fingerprint();
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(read, 300);
  EXPECT_THAT(fingerprints, testing::Each(fingerprints[0]));
  EXPECT_EQ(stores().size(), 1u) << "and no lock stays";
}

TEST_P(TableStoreTest, WaitingForAnotherProcessCanBeStopped) {
  prepare();
  std::filesystem::path lock = stores().at(0);
  std::filesystem::remove(lock);
  lock += ".lock";
  FileLock other;
  ASSERT_TRUE(other.try_take(lock));
  std::atomic<bool> stopped{false};
  words_.options.stop = &stopped;
  std::string said;
  words_.options.scanning = [&](const std::string& line) {
    said = line;
    stopped = true;
  };
  try {
    prepare();
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(is_stop(error));
  }
  EXPECT_THAT(said, HasSubstr("another process is preparing these rows"));
}

TEST_P(TableStoreTest, NobodyWaitsWhereTheStoreIsThere) {
  prepare();
  std::filesystem::path lock = stores().at(0);
  lock += ".lock";
  FileLock other;
  ASSERT_TRUE(other.try_take(lock));
  prepare();
  EXPECT_EQ(read_, 0);
}

TEST_P(TableStoreTest, RanksThatWaitedForAFailureFailTogether) {
  words_.table.rows[7][3] = std::string("no number");
  std::atomic<int> failed{0};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&] {
      auto device = open_device({.kind = "cpu"});
      EXPECT_THROW(words_.prepare(*device), Error);
      ++failed;
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(failed, 4);
  EXPECT_TRUE(stores().empty()) << "no lock either";
}

TEST_P(TableStoreTest, ARankWhoseScanFailsLetsTheNextOneTry) {
  words_.table.rows[7][3] = std::string("no number");
  EXPECT_THROW(prepare(), Error);
  EXPECT_TRUE(stores().empty());
  words_.table.rows[7][3] = 1.0;
  prepare();
  EXPECT_EQ(read_, 300);
}

TEST_P(TableStoreTest, AResumedRunUsesTheStoreWithItsStatistics) {
  prepare();
  words_.options.statistics = set_->statistics();
  prepare();
  EXPECT_EQ(read_, 0);
  const WordsDataset words = words_;
  words_.options.statistics.reset();
  for (std::vector<FakeCell>& row : words_.table.rows) row[3] = 1e6;
  words_.table.version = "2";
  prepare();
  Json other = set_->statistics();
  words_ = words;
  ASSERT_NE(other, *words_.options.statistics);
  words_.options.statistics = other;
  prepare();
  EXPECT_EQ(read_, 300) << "those of other rows";
  std::vector<SeenBatch> seen = batches();
  prepare();
  EXPECT_EQ(read_, 0);
  EXPECT_EQ(batches(), seen);
  words_.options.statistics.reset();
  prepare();
  EXPECT_EQ(read_, 0) << "the first store is still there";
}

TEST_P(TableStoreTest, DamagedRowsAreRepairedWhileBatchesAreMade) {
  prepare();
  const std::vector<SeenBatch> seen = batches();
  const std::string intact = bytes_of_store();
  for (const char* of : {"rows", "runs/", "keys", "lengths/"}) {
    damage(place_of(of) + 40);
    prepare();
    EXPECT_EQ(batches(), seen) << of;
    set_->keys();
    EXPECT_EQ(bytes_of_store(), intact) << of;
  }
}

TEST_P(TableStoreTest, EveryBlockOfAStoreIsRepairedAtOnce) {
  prepare();
  const std::vector<SeenBatch> seen = batches();
  const std::string intact = bytes_of_store();
  for (const char* of : {"rows", "runs/", "keys", "sides"})
    damage(place_of(of));
  prepare();
  EXPECT_EQ(batches(), seen);
  EXPECT_EQ(bytes_of_store(), intact);
}

TEST_P(TableStoreTest, AStoreThatIsCutOffWhileItIsReadIsRepaired) {
  prepare();
  const std::vector<SeenBatch> seen = batches();
  prepare();
  const std::string intact = bytes_of_store();
  std::filesystem::resize_file(stores()[0], 0);
  EXPECT_EQ(batches(), seen);
  EXPECT_EQ(bytes_of_store(), intact);
}

TEST_P(TableStoreTest, OtherProcessesKeepTheirMappingOfARepairedStore) {
  prepare();
  const std::vector<SeenBatch> seen = batches();
  const std::shared_ptr<const TableDataset> other = prepare();
  damage(place_of("rows"));
  prepare();
  EXPECT_EQ(batches(), seen);
  EXPECT_EQ(seen_batches(other, options_, *device_), seen);
}

TEST_P(TableStoreTest, RowsThatHaveChangedRepairNothing) {
  prepare();
  damage(place_of("rows"));
  for (std::vector<FakeCell>& row : words_.table.rows) row[3] = 7.0;
  prepare();
  try {
    batches();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "files.changed");
    EXPECT_THAT(error.what(), HasSubstr("not those that were stored"));
  }
}

TEST_P(TableStoreTest, DamagedRowsOfASourceThatFailsStopInTheirBatchsTurn) {
  prepare();
  const std::string store = stores()[0].string();
  damage(place_of("rows") + 40);
  trouble_.reads_fail = true;
  prepare();
  EXPECT_EQ(read_, 0) << "they are checked when they are used";
  try {
    batches();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "store.damaged");
    EXPECT_THAT(error.what(), HasSubstr(store + ":0"));
    EXPECT_THAT(error.what(), HasSubstr("cannot be made again"));
    EXPECT_THAT(error.what(),
                HasSubstr("start again, which makes a new store"));
  }
  EXPECT_THAT(stores(), testing::IsEmpty());
  trouble_.reads_fail = false;
  prepare();
  EXPECT_EQ(read_, 300);
  EXPECT_EQ(batches().size(), 15u);
}

TEST_P(TableStoreTest, ADamagedStoreIsMadeAnew) {
  prepare();
  std::vector<SeenBatch> seen = batches();
  for (std::uintmax_t from_end : {1u, 100u, 600u}) {
    damage(std::filesystem::file_size(stores()[0]) - from_end);
    prepare();
    EXPECT_EQ(read_, 300);
    EXPECT_EQ(batches(), seen);
    prepare();
    EXPECT_EQ(read_, 0);
  }
  std::filesystem::resize_file(stores()[0], 5000);
  prepare();
  EXPECT_EQ(read_, 300);
  EXPECT_EQ(batches(), seen);
}

TEST_P(TableStoreTest, AResumedRunRepairsTheStoreThatItUses) {
  prepare();
  const std::vector<SeenBatch> seen = batches();
  damage(place_of("sides") + 7);
  words_.options.statistics = set_->statistics();
  for (std::int64_t read : {300, 0}) {
    prepare();
    EXPECT_EQ(read_, read);
    EXPECT_EQ(batches(), seen);
  }
  EXPECT_EQ(stores().size(), 1u);
  words_.options.statistics.reset();
  prepare();
  EXPECT_EQ(read_, 0);
  EXPECT_EQ(batches(), seen);
}

TEST_P(TableStoreTest, BadRowsStayOnTheList) {
  words_.options.source.skip_bad = true;
  words_.table.rows[7][1] = std::string("bad!");
  prepare();
  ASSERT_EQ(set_->facts().scan->bad_rows, 1);
  const std::string why = set_->facts().scan->quarantine[0].why;
  prepare();
  EXPECT_EQ(read_, 0);
  EXPECT_EQ(set_->rows(), 299);
  EXPECT_EQ(set_->facts().scan->bad_rows, 1);
  EXPECT_EQ(set_->facts().scan->quarantine[0].why, why);
}

TEST_P(TableStoreTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(dir_.string()) << "a file";
  try {
    prepare();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot make the folder"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, TableStoreTest,
                         testing::Values(Case{"cpu", 0, ColumnType::int64},
                                         Case{"cpu", 2, ColumnType::text},
                                         Case{"sim", 1, ColumnType::uuid},
                                         Case{"sim", 8, ColumnType::int64}));

}  // namespace
}  // namespace penstock
