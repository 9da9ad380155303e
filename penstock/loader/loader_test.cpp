#include "penstock/loader/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <thread>

#include "penstock/dataset/fake/fake_dataset.h"

namespace penstock {
namespace {

struct Case {
  const char* device;
  const char* cache;
  int workers;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.device << " " << c.cache << " " << c.workers << " workers";
}

/// What a consumer saw of a batch.
struct SeenBatch {
  Position at;
  std::vector<SampleId> ids;
  std::string bytes;  // of all tensors
};

class LoaderTest : public testing::TestWithParam<Case> {
 protected:
  LoaderTest() {
    DeviceSpec spec;
    spec.kind = GetParam().device;
    spec.virtual_time = spec.kind == std::string("sim");
    device_ = open_device(spec);
    fake_.options.cache = GetParam().cache;
    options_.batch_size = 64;
    options_.workers = GetParam().workers;
  }

  void prepare() {
    if (set_ == nullptr) set_ = fake_.prepare(*device_);
  }

  std::vector<SeenBatch> run(std::int64_t batches) {
    prepare();
    options_.batches = batches;
    Loader loader(set_, options_, *device_);
    std::unique_ptr<Stream> stream = device_->make_stream();
    std::vector<SeenBatch> seen;
    while (std::optional<Batch> batch = loader.next(*stream)) {
      SeenBatch one{.at = batch->at()};
      one.ids.assign(batch->ids().begin(), batch->ids().end());
      for (const NamedTensor& tensor : batch->tensors()) {
        std::string host(tensor.view.bytes(), '\0');
        stream->copy(reinterpret_cast<std::byte*>(host.data()),
                     tensor.view.data, host.size());
        stream->synchronize();
        one.bytes += host;
      }
      seen.push_back(std::move(one));
    }
    return seen;
  }

  std::unique_ptr<Device> device_;
  FakeDataset fake_;
  LoaderOptions options_;
  std::shared_ptr<const TableDataset> set_;
};

TEST_P(LoaderTest, IsReadyWithinATimeThoughTheLoopHoldsEverything) {
  prepare();
  options_.batches = 12;
  Loader loader(set_, options_, *device_);
  std::unique_ptr<Stream> stream = device_->make_stream();
  std::vector<Batch> held;
  while (true) {
    ASSERT_TRUE(loader.ready_within(std::chrono::hours(1)));
    std::optional<Batch> batch = loader.next(*stream);
    if (!batch) break;
    held.push_back(std::move(*batch));
  }
  EXPECT_EQ(held.size(), 12u);
}

TEST_P(LoaderTest, DeliversEverySampleOncePerEpoch) {
  options_.tail = Tail::exact;
  std::vector<SeenBatch> seen = run(32);
  std::multiset<SampleId> first, second;
  for (const SeenBatch& batch : seen)
    (batch.at.epoch == 0 ? first : second)
        .insert(batch.ids.begin(), batch.ids.end());
  std::vector<SampleId> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_THAT(first, testing::ElementsAreArray(all));
  EXPECT_EQ(first, second);
  EXPECT_NE(seen[0].ids, seen[16].ids) << "epochs differ in their order";
}

// The definition of correct: row `id` of the counting table, written by hand.
TEST_P(LoaderTest, DeliversTheRowsThatTheIdsName) {
  prepare();
  options_.batches = 3;
  Loader loader(set_, options_, *device_);
  std::unique_ptr<Stream> stream = device_->make_stream();
  while (std::optional<Batch> batch = loader.next(*stream)) {
    ASSERT_EQ(batch->tensors().size(), 3u);
    EXPECT_EQ(batch->tensors()[1].name, "items_mask");
    EXPECT_EQ(batch->tensors()[0].view.shape, (Shape{64, 4, 2}));
    std::vector<float> items(64 * 8), mask(64 * 4), value(64);
    std::vector<float>* targets[] = {&items, &mask, &value};
    for (std::size_t t = 0; t < 3; ++t) {
      ASSERT_EQ(batch->tensors()[t].view.bytes(), targets[t]->size() * 4);
      stream->copy(reinterpret_cast<std::byte*>(targets[t]->data()),
                   batch->tensors()[t].view.data, targets[t]->size() * 4);
    }
    stream->synchronize();
    for (std::size_t row = 0; row < 64; ++row) {
      std::int64_t id = batch->ids()[row];
      EXPECT_EQ(value[row], static_cast<float>(id));
      for (std::size_t j = 0; j < 4; ++j) {
        bool present = static_cast<std::int64_t>(j) < 1 + id % 5;
        EXPECT_EQ(mask[row * 4 + j], present ? 1.0f : 0.0f);
        EXPECT_EQ(items[row * 8 + j * 2], present ? static_cast<float>(id) : 0);
        EXPECT_EQ(items[row * 8 + j * 2 + 1],
                  present ? static_cast<float>(j) : 0);
      }
    }
  }
}

TEST_P(LoaderTest, JumpsToAnyStepWithoutWalkingThere) {
  std::vector<SeenBatch> walked = run(20);
  options_.start = {.epoch = 1, .step = 2};
  std::vector<SeenBatch> jumped = run(3);
  ASSERT_EQ(walked[17].at, jumped[0].at);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(jumped[i].bytes, walked[17 + i].bytes);
}

TEST_P(LoaderTest, PadsWithZerosOfWeightZero) {
  options_.tail = Tail::pad;
  std::vector<SeenBatch> seen = run(16);
  const SeenBatch& last = seen.back();
  ASSERT_EQ(last.ids.size(), 64u);
  EXPECT_EQ(last.ids[39], seen.back().ids[39]);
  EXPECT_GE(last.ids[39], 0);
  EXPECT_EQ(last.ids[40], -1);
  std::vector<float> weights(64);
  std::memcpy(weights.data(), last.bytes.data() + last.bytes.size() - 256, 256);
  EXPECT_EQ(weights[39], 1.0f);
  EXPECT_EQ(weights[40], 0.0f);
  EXPECT_EQ(last.bytes[40 * 32], '\0');
}

TEST_P(LoaderTest, RanksShareABatchWithoutAGap) {
  std::vector<SeenBatch> whole = run(4);
  std::vector<std::vector<SampleId>> joined(4);
  for (int rank = 0; rank < 3; ++rank) {
    options_.rank = {.rank = rank, .world = 3};
    std::vector<SeenBatch> part = run(4);
    for (std::size_t i = 0; i < 4; ++i)
      joined[i].insert(joined[i].end(), part[i].ids.begin(), part[i].ids.end());
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(joined[i], whole[i].ids);
}

TEST_P(LoaderTest, ABatchMayOutliveItsLoader) {
  prepare();
  std::unique_ptr<Stream> stream = device_->make_stream();
  std::optional<Batch> kept;
  {
    Loader loader(set_, options_, *device_);
    kept = loader.next(*stream);
  }
  EXPECT_EQ(kept->rows(), 64);
  stream->synchronize();
}

// Destroying a batch says "when my stream is here, it may be filled again":
// the copy below is only queued when batch and loader go.
TEST_P(LoaderTest, MemoryStaysUntilTheConsumersWorkIsDone) {
  std::string expected = run(1)[0].bytes;
  std::unique_ptr<Stream> stream = device_->make_stream();
  std::string got(expected.size(), '\0');
  {
    Loader loader(set_, options_, *device_);
    std::optional<Batch> batch = loader.next(*stream);
    std::size_t at = 0;
    for (const NamedTensor& tensor : batch->tensors()) {
      stream->copy(reinterpret_cast<std::byte*>(got.data() + at),
                   tensor.view.data, tensor.view.bytes());
      at += tensor.view.bytes();
    }
  }
  stream->synchronize();
  EXPECT_TRUE(got == expected);
}

// Each stream reads the whole batch, and gets there when all batches are gone.
TEST_P(LoaderTest, MemoryStaysForEveryStreamThatWaited) {
  std::vector<SeenBatch> expected = run(12);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(device_->make_stream());
  std::vector<std::string> got(3 * 12);
  Loader loader(set_, options_, *device_);
  for (std::size_t i = 0; i < got.size(); i += 3) {
    std::optional<Batch> batch = loader.next();
    for (const auto& stream : streams) batch->wait_on(*stream);
    batch->wait_on(*streams[1]);  // again is no harm
    for (std::size_t s = 0; s < 3; ++s) {
      std::string& all = got[i + s];
      all.resize(expected[i / 3].bytes.size());
      auto* to = reinterpret_cast<std::byte*>(all.data());
      for (const NamedTensor& tensor : batch->tensors()) {
        streams[s]->copy(to, tensor.view.data, tensor.view.bytes());
        to += tensor.view.bytes();
      }
    }
  }
  for (const auto& stream : streams) stream->synchronize();
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(got[i] == expected[i / 3].bytes)
        << "batch " << i / 3 << ", stream " << i % 3;
}

TEST_P(LoaderTest, ALoopMayHoldMoreBatchesThanThereAreSlots) {
  prepare();
  Loader loader(set_, options_, *device_);
  std::vector<Batch> held;
  for (int i = 0; i < 9; ++i) held.push_back(*loader.next());
  EXPECT_EQ(held[8].at(), (Position{0, 8}));
}

TEST_P(LoaderTest, CanBeDroppedInTheMiddle) {
  prepare();
  for (int taken : {0, 1, 3}) {
    Loader loader(set_, options_, *device_);
    for (int i = 0; i < taken; ++i) loader.next();
  }
}

TEST_P(LoaderTest, KnowsThePositionToResumeFrom) {
  prepare();
  Loader loader(set_, options_, *device_);
  EXPECT_EQ(loader.position(), (Position{0, 0}));
  for (int i = 0; i < 15; ++i) loader.next();
  EXPECT_EQ(loader.position(), (Position{1, 0}));
  EXPECT_EQ(loader.steps_per_epoch(), 15);
}

TEST_P(LoaderTest, RefusesMoreRowsPerBatchThanThereAre) {
  prepare();
  options_.batch_size = 2000;
  EXPECT_THROW(Loader(set_, options_, *device_), Error);
}

TEST_P(LoaderTest, DeliversAllBatchesBeforeTheOneThatFails) {
  if (GetParam().cache != std::string("none")) return;
  prepare();
  options_.shuffle = false;
  options_.prefetch = 8;
  fake_.source->remove_row(9 * 64 + 5);
  Loader loader(set_, options_, *device_);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(loader.next()->at().step, i);
  for (int again = 0; again < 3; ++again) {
    try {
      loader.next();
      FAIL() << "the error stays";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::source);
    }
  }
}

TEST_P(LoaderTest, AnEarlyFailureOfTheSourceIsHeard) {
  if (GetParam().cache != std::string("none")) return;
  fake_.trouble.fail_at_read = 1;
  prepare();
  Loader loader(set_, options_, *device_);
  EXPECT_THROW(for (int i = 0; i < 20; ++i) loader.next(), Error);
}

TEST_P(LoaderTest, AReaderWithAGlobalLockChangesNothing) {
  std::vector<SeenBatch> free = run(5);
  fake_.trouble.global_lock = true;
  set_.reset();
  std::vector<SeenBatch> locked = run(5);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(free[i].bytes, locked[i].bytes);
}

INSTANTIATE_TEST_SUITE_P(
    All, LoaderTest,
    testing::Values(Case{"cpu", "ram", 0}, Case{"cpu", "ram", 1},
                    Case{"cpu", "ram", 2}, Case{"cpu", "ram", 8},
                    Case{"cpu", "none", 0}, Case{"cpu", "none", 1},
                    Case{"cpu", "none", 2}, Case{"cpu", "none", 8},
                    Case{"sim", "device", 0}, Case{"sim", "device", 2},
                    Case{"sim", "ram", 0}, Case{"sim", "ram", 1},
                    Case{"sim", "ram", 8}, Case{"sim", "none", 0},
                    Case{"sim", "none", 2}));

// Same bytes from every tier, device and number of workers.
TEST(LoaderEquality, TimeChangesBytesNever) {
  std::string expected;
  for (const char* device : {"cpu", "sim"})
    for (const char* cache : {"device", "ram", "none"})
      for (int workers : {0, 1, 2, 8}) {
        DeviceSpec spec;
        spec.kind = device;
        std::unique_ptr<Device> opened = open_device(spec);
        FakeDataset fake;
        fake.options.cache = cache;
        fake.options.workers = workers;
        fake.options.fields = fake_fields(R"(, "standardize": true)");
        std::shared_ptr<const TableDataset> set = fake.prepare(*opened);
        Loader loader(set,
                      {.seed = 9,
                       .tail = Tail::pad,
                       .batch_size = 96,
                       .workers = workers,
                       .prefetch = 1 + workers,
                       .batches = 12},
                      *opened);
        std::unique_ptr<Stream> stream = opened->make_stream();
        std::string all;
        while (std::optional<Batch> batch = loader.next(*stream))
          for (const NamedTensor& tensor : batch->tensors()) {
            std::string host(tensor.view.bytes(), '\0');
            stream->copy(reinterpret_cast<std::byte*>(host.data()),
                         tensor.view.data, host.size());
            stream->synchronize();
            all += host;
          }
        if (expected.empty()) expected = all;
        EXPECT_TRUE(all == expected)
            << device << " " << cache << " " << workers;
      }
}

TEST(LoaderSide, ASideWithoutRowsIsRefusedWhateverTheTail) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  FakeDataset fake;
  std::shared_ptr<const TableDataset> set = fake.prepare(*device);
  for (Tail tail : {Tail::drop, Tail::pad, Tail::exact}) {
    try {
      Loader loader(set, {.side = Side::val, .tail = tail}, *device);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "loader.empty_side");
      EXPECT_EQ(error.parts().where, "split.val");
    }
  }
}

TEST(LoaderPerSample, SendsOneStatementPerRow) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  FakeDataset fake;
  fake.options.cache = "none";
  std::shared_ptr<const TableDataset> set = fake.prepare(*device);
  Loader loader(set, {.batch_size = 10, .per_sample = true, .batches = 2},
                *device);
  while (loader.next()) {
  }
  EXPECT_EQ(fake.source->counts().reads, 20);
  EXPECT_EQ(loader.stages()[1].name, "read per sample");
  EXPECT_EQ(loader.stages()[1].calls, 20);
}

TEST(LoaderPerSample, TakesNoThreadsWhateverIsAsked) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  FakeDataset fake;
  fake.options.cache = "none";
  std::shared_ptr<const TableDataset> set = fake.prepare(*device);
  Loader loader(set, {.batch_size = 10, .workers = 8, .per_sample = true},
                *device);
  loader.next();
  EXPECT_EQ(loader.stages()[1].workers, 0);
}

// Reads are counted after the loader had all the time that it wanted.
TEST(LoaderPrefetch, GoesExactlyAsFarAheadAsAsked) {
  for (int workers : {1, 2, 8})
    for (int prefetch : {1, 3}) {
      std::unique_ptr<Device> device = open_device({.kind = "cpu"});
      FakeDataset fake;
      fake.options.cache = "none";
      std::shared_ptr<const TableDataset> set = fake.prepare(*device);
      Loader loader(
          set, {.batch_size = 10, .workers = workers, .prefetch = prefetch},
          *device);
      auto rows_read = [&] { return loader.stages()[3].items; };
      loader.next();
      std::int64_t expected = 10 * (1 + prefetch);
      while (rows_read() < expected) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(rows_read(), expected) << workers << " workers";
    }
}

TEST(LoaderPrefetch, WithoutPrefetchNothingIsReadAhead) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  FakeDataset fake;
  fake.options.cache = "none";
  std::shared_ptr<const TableDataset> set = fake.prepare(*device);
  Loader loader(set, {.batch_size = 10, .workers = 4, .prefetch = 0}, *device);
  loader.next();
  EXPECT_EQ(fake.source->counts().reads, 1);
}

TEST(LoaderRing, TakesTheMemoryThatItPredicts) {
  for (int prefetch : {0, 2, 7})
    for (Tail tail : {Tail::drop, Tail::pad}) {
      std::unique_ptr<Device> device = open_device({.kind = "sim"});
      FakeDataset fake;
      fake.options.cache = "none";
      std::shared_ptr<const TableDataset> set = fake.prepare(*device);
      LoaderOptions options{
          .tail = tail, .batch_size = 100, .workers = 2, .prefetch = prefetch};
      std::size_t before = device->memory().free;
      Loader loader(set, options, *device);
      EXPECT_EQ(before - device->memory().free,
                ring_bytes(options, set->facts()).device);
    }
}

TEST(LoaderRing, TakesNoMoreMemoryThanItsRowsNeed) {
  for (Tail tail : {Tail::exact, Tail::drop})
    for (int world : {1, 3}) {
      std::unique_ptr<Device> device = open_device({.kind = "sim"});
      FakeDataset fake;
      fake.options.cache = "none";
      std::shared_ptr<const TableDataset> set = fake.prepare(*device);
      std::int64_t large = tail == Tail::exact ? 1 << 24 : set->rows();
      LoaderOptions options{
          .tail = tail, .batch_size = large, .rank = {.world = world}};
      std::size_t before = device->memory().free;
      Loader loader(set, options, *device);
      std::size_t taken = before - device->memory().free;
      EXPECT_EQ(taken, ring_bytes(options, set->facts()).device);
      options.batch_size = set->rows();
      DatasetFacts facts = set->facts();
      facts.rows = 1 << 24;
      EXPECT_EQ(taken, ring_bytes(options, facts).device);
      EXPECT_EQ(loader.next()->rows(), set->rows() / world);
    }
}

}  // namespace
}  // namespace penstock
