// Batches whose rows are read by I/O threads, ahead of the workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "penstock/loader/loader.h"
#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kRows = 2000;

struct Case {
  const char* device;
  bool scanned;  // a TableDataset in tier none, else an IndexedDataset
  int workers;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.device << (c.scanned ? " scanned " : " by position ") << c.workers
       << " workers";
}

/// Holds all who come until so many are inside at once, or 10 seconds have
/// passed.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size) {}
  void join() {
    Lock lock(mutex_);
    met_ |= ++inside_ >= size_;
    all_.notify_all();
    auto end = std::chrono::steady_clock::now() + 10s;
    while (!met_ && !given_up_) given_up_ = !all_.wait_until(mutex_, end);
    --inside_;
  }
  bool met() {
    Lock lock(mutex_);
    return met_;
  }

 private:
  const int size_;
  Mutex mutex_;
  Condition all_;
  int inside_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool met_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool given_up_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

using Rows = std::vector<std::pair<SampleId, float>>;

class ReadAheadLoader : public testing::TestWithParam<Case> {
 protected:
  ReadAheadLoader() : device_(open_device({.kind = GetParam().device})) {
    loading_ = {.tail = Tail::pad,
                .batch_size = 64,
                .workers = GetParam().workers,
                .prefetch = 3,
                .batches = 40};
  }

  std::shared_ptr<const Dataset> open() {
    prepared_ = false;
    trouble_.reading = [this] {
      if (prepared_ && reading_) reading_();
    };
    trouble_.spoil = [this](Block& block) {
      if (prepared_ && spoil_) spoil_(block);
    };
    std::vector<Field> fields = parse_fields(
        Json::parse(R"({"value": {"columns": ["value"]}})", "test"), "fields");
    auto made = counting_store(kRows, requests_of(fields), trouble_);
    store_ = made.get();
    std::shared_ptr<const Dataset> set;
    if (GetParam().scanned)
      set = TableDataset::prepare({{.fields = fields}, {.cache = "none"}},
                                  std::move(made), *device_);
    else
      set = std::make_shared<IndexedDataset>(IndexedOptions{.fields = fields},
                                             std::move(made));
    prepared_ = true;
    before_ = store_->counts().reads;
    return set;
  }

  Rows rows_of(const Batch& batch) const {
    batch.wait();
    Rows rows;
    const auto* values =
        reinterpret_cast<const float*>(batch.tensors()[0].view.data);
    for (std::int64_t row = 0; row < batch.rows(); ++row)
      rows.emplace_back(batch.ids()[static_cast<std::size_t>(row)],
                        values[row]);
    return rows;
  }
  Rows all_rows(const LoaderOptions& loading) {
    Loader loader(open(), loading, *device_);
    Rows all;
    while (std::optional<Batch> batch = loader.next()) {
      Rows rows = rows_of(*batch);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }
  static StageNumbers stage(const Loader& loader, const std::string& name) {
    for (StageNumbers& stage : loader.stages())
      if (stage.name == name) return stage;
    return {};
  }
  /// Those that it took in all, once there are no more batches.
  static std::int64_t reads_of(Loader& loader) {
    while (loader.next()) {
    }
    return stage(loader, "read").calls;
  }
  /// I/O threads that there are where so many would be of use.
  int expected(int readers) const {
    return GetParam().workers == 0 ? 0 : readers;
  }

  std::unique_ptr<Device> device_;
  FakeStoreTrouble trouble_;
  std::function<void()> reading_;
  std::function<void(Block&)> spoil_;
  std::atomic<bool> prepared_ = false;
  std::int64_t before_ = 0;
  FakeStore* store_ = nullptr;
  LoaderOptions loading_;
};

TEST_P(ReadAheadLoader, AsManyReadsAreInFlightAsThereAreReaders) {
  if (GetParam().workers == 0) return;
  Meeting meeting(4);
  reading_ = [&] { meeting.join(); };
  Loader loader(open(), loading_, *device_);
  while (loader.next()) {
  }
  EXPECT_TRUE(meeting.met());
  EXPECT_EQ(stage(loader, "read").workers, 4);
  EXPECT_EQ(stage(loader, "read").pool, "readers");
  EXPECT_EQ(stage(loader, "parse").workers, GetParam().workers);
}

TEST_P(ReadAheadLoader, TheMoreBatchesAreAheadTheFewerPartsEachIsReadIn) {
  const int workers = GetParam().workers;
  if (workers == 0) return;
  loading_.batch_size = 1024;
  loading_.batches = 20;
  for (int prefetch : {1, 2, 4, 16, 32}) {
    loading_.prefetch = prefetch;
    Loader loader(open(), loading_, *device_);
    EXPECT_EQ(reads_of(loader),
              20 * parts_of_batch({.workers = workers,
                                   .readers = 4,
                                   .prefetch = std::min(prefetch, 20)}))
        << prefetch;
  }
}

TEST_P(ReadAheadLoader, PartsFollowTheBatchesAheadThatAreSetWhileItRuns) {
  const int workers = GetParam().workers;
  if (workers == 0) return;
  loading_.batch_size = 1024;
  loading_.prefetch = 2;
  loading_.batches = 100;
  Loader loader(open(), loading_, *device_);
  loader.next();
  loader.set_threads({.workers = workers, .readers = 4, .prefetch = 32});
  EXPECT_LE(reads_of(loader), 5 * std::max(4, workers) + 95);
}

TEST_P(ReadAheadLoader, PartsAreNeverMoreThanAtFirst) {
  const int workers = GetParam().workers;
  if (workers == 0) return;
  loading_.batch_size = 1024;
  loading_.prefetch = 16;
  Loader loader(open(), loading_, *device_);
  loader.next();
  loader.set_threads({.workers = workers, .readers = 16, .prefetch = 2});
  EXPECT_EQ(reads_of(loader), 40);
}

TEST_P(ReadAheadLoader, AFewBatchesAreSharedByAllReaders) {
  const int workers = GetParam().workers;
  if (workers == 0) return;
  loading_.batch_size = 1024;
  loading_.prefetch = 16;
  loading_.batches = 1;  // as a validation may be
  Loader loader(open(), loading_, *device_);
  EXPECT_EQ(reads_of(loader), std::max(4, workers));
}

TEST(PartsOfBatch, GiveEachThreadTwoAsSoonAsEnoughBatchesAreAhead) {
  EXPECT_EQ(parts_of_batch({.workers = 1, .readers = 4, .prefetch = 2}), 4);
  EXPECT_EQ(parts_of_batch({.workers = 1, .readers = 4, .prefetch = 4}), 2);
  EXPECT_EQ(parts_of_batch({.workers = 1, .readers = 4, .prefetch = 8}), 1);
  EXPECT_EQ(parts_of_batch({.workers = 1, .readers = 4, .prefetch = 100}), 1);
  EXPECT_EQ(parts_of_batch({.workers = 1, .readers = 16, .prefetch = 8}), 4);
  EXPECT_EQ(parts_of_batch({.workers = 16, .readers = 4, .prefetch = 8}), 4);
  EXPECT_EQ(parts_of_batch({.workers = 1, .readers = 5, .prefetch = 8}), 1);
  EXPECT_EQ(parts_of_batch({.workers = 1, .readers = 6, .prefetch = 8}), 2);
  for (int prefetch : {0, 1}) {
    EXPECT_EQ(
        parts_of_batch({.workers = 2, .readers = 4, .prefetch = prefetch}), 4);
  }
}

TEST(PartsOfBatch, AreAsManyAsWorkersWhereNothingIsReadAhead) {
  EXPECT_EQ(parts_of_batch({.workers = 8, .readers = 0, .prefetch = 64}), 8);
  EXPECT_EQ(parts_of_batch({.workers = 0, .readers = 0, .prefetch = 0}), 1);
}

TEST_P(ReadAheadLoader, ABatchOfFewRowsIsReadWithTheNextOnes) {
  if (GetParam().workers == 0) return;
  Meeting meeting(3);
  reading_ = [&] { meeting.join(); };
  loading_.batch_size = 8;
  all_rows(loading_);
  EXPECT_TRUE(meeting.met());
}

TEST_P(ReadAheadLoader, RowsAreTheSameForAnyReaders) {
  LoaderOptions inlined = loading_;
  inlined.workers = 0;
  Rows expected = all_rows(inlined);
  ASSERT_EQ(expected.size(), 40u * 64);
  for (auto [id, value] : expected)
    ASSERT_EQ(value, id < 0 ? 0 : static_cast<float>(id));
  for (int readers : {0, 1, 3, 8}) {
    loading_.readers = readers;
    EXPECT_EQ(all_rows(loading_), expected) << readers << " readers";
  }
}

TEST_P(ReadAheadLoader, WorkersFillWhateverHasArrived) {
  if (GetParam().workers == 0) return;
  std::atomic<Loader*> loader = nullptr;
  std::atomic<bool> first = true, late = false;
  reading_ = [&] {
    if (!first.exchange(false)) return;
    auto end = std::chrono::steady_clock::now() + 10s;
    while (loader == nullptr || stage(*loader, "collate").items == 0) {
      late = late || std::chrono::steady_clock::now() > end;
      if (late) return;
      std::this_thread::yield();
    }
  };
  Loader made(open(), loading_, *device_);
  loader = &made;
  EXPECT_TRUE(made.next());
  EXPECT_FALSE(late) << "no other item was filled";
}

TEST_P(ReadAheadLoader, AnErrorOfAReadIsHeardInTheBatchsTurn) {
  Rows all = all_rows(loading_);
  const std::size_t bad_batch = 23;
  const SampleId bad = all[bad_batch * 64 + 17].first;
  ASSERT_GE(bad, 0);
  std::size_t first_with_it = bad_batch;  // an epoch before may have it too
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].first == bad) {
      first_with_it = i / 64;
      break;
    }
  spoil_ = [bad](Block& block) {
    for (std::int64_t row = 0; row < block.rows; ++row)
      if (block.columns[0].float64(row) == static_cast<double>(bad))
        throw Error(ErrorKind::source, {.code = "fake.failed", .what = "bad"});
  };
  for (int run = 0; run < 10; ++run) {
    Loader loader(open(), loading_, *device_);
    std::size_t batches = 0;
    try {
      while (loader.next()) ++batches;
      FAIL() << "ended after " << batches;
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "fake.failed");
    }
    EXPECT_EQ(batches, first_with_it);
    EXPECT_THROW(loader.next(), Error) << "the error stays";
  }
}

TEST_P(ReadAheadLoader, ItEndsInTheMiddleOfAReadAndLeavesNoReader) {
  if (GetParam().workers == 0) return;
  std::atomic<int> inside = 0;
  std::atomic<bool> free = false;
  reading_ = [&] {
    ++inside;
    inside.notify_all();
    free.wait(false);
  };
  std::shared_ptr<const Dataset> set = open();
  auto loader = std::make_unique<Loader>(set, loading_, *device_);
  for (int now = inside; now < 4; now = inside) inside.wait(now);
  std::thread release([&] {
    free = true;
    free.notify_all();
  });
  loader.reset();
  release.join();
  EXPECT_EQ(store_->counts().readers_open, 0);
}

TEST_P(ReadAheadLoader, AReaderThatCannotBeOpenedIsHeard) {
  trouble_.opening = [this] {
    if (prepared_)
      throw Error(ErrorKind::source, {.code = "fake.failed", .what = "none"});
  };
  try {
    Loader loader(open(), loading_, *device_);
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "fake.failed");
  }
}

TEST_P(ReadAheadLoader, ALibraryWithOneLockGetsOneReader) {
  trouble_.global_lock = true;
  std::atomic<std::int64_t> most = 0;
  reading_ = [&] {
    std::int64_t open = store_->counts().readers_open;
    if (open > most) most = open;
  };
  Loader loader(open(), loading_, *device_);
  while (loader.next()) {
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(stage(loader, "read").workers, expected(1));
}

TEST_P(ReadAheadLoader, ALoopThatKeepsItsBatchesGetsMore) {
  Loader loader(open(), loading_, *device_);
  std::vector<Batch> kept;
  while (kept.size() < 12) kept.push_back(promised(loader.next()));
  for (const Batch& batch : kept)
    for (auto [id, value] : rows_of(batch))
      ASSERT_EQ(value, id < 0 ? 0 : static_cast<float>(id));
}

TEST_P(ReadAheadLoader, ASubstituteIsReadByTheWorker) {
  spoil_ = [](Block& block) {
    for (std::int64_t row = 0; row < block.rows; ++row)
      if (block.columns[0].float64(row) == 77)
        block.problems.push_back({.row = row, .column = 0, .why = "bad"});
  };
  if (GetParam().scanned) return;  // where no row is rejected when it is read
  loading_.on_bad = OnBad::substitute;
  Rows rows = all_rows(loading_);
  ASSERT_EQ(rows.size(), 40u * 64);
  for (auto [id, value] : rows) {
    EXPECT_NE(id, 77);
    EXPECT_EQ(value, id < 0 ? 0 : static_cast<float>(id));
  }
}

TEST_P(ReadAheadLoader, RowsThatAreKeptStartNoReader) {
  if (!GetParam().scanned) return;
  std::vector<Field> fields = parse_fields(
      Json::parse(R"({"value": {"columns": ["value"]}})", "test"), "fields");
  auto set = TableDataset::prepare({{.fields = fields}, {.cache = "ram"}},
                                   counting_store(kRows, requests_of(fields)),
                                   *device_);
  auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         {});
  };
  EXPECT_EQ(set->facts().most_readers, 0);
  auto before = threads();
  Loader loader(set, loading_, *device_);
  EXPECT_LE(threads() - before, GetParam().workers);
  loader.next();
  EXPECT_EQ(stage(loader, "read").items, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, ReadAheadLoader,
    testing::Values(Case{"cpu", false, 0}, Case{"cpu", false, 1},
                    Case{"cpu", false, 2}, Case{"cpu", false, 8},
                    Case{"cpu", true, 0}, Case{"cpu", true, 1},
                    Case{"cpu", true, 8}, Case{"sim", false, 0},
                    Case{"sim", false, 1}, Case{"sim", false, 8},
                    Case{"sim", true, 0}, Case{"sim", true, 1},
                    Case{"sim", true, 2}, Case{"sim", true, 8}));

}  // namespace
}  // namespace penstock
