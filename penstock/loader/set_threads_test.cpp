// Threads and batches ready ahead that are changed while batches are made.
#include <gtest/gtest.h>

#include "penstock/base/random.h"
#include "penstock/loader/loader.h"
#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

struct Case {
  const char* device;
  const char* cache;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.device << ", cache " << c.cache;
}

constexpr std::int64_t kRows = 3000;

class LoaderSetThreads : public testing::TestWithParam<Case> {
 protected:
  LoaderSetThreads() : device_(open_device({.kind = GetParam().device})) {
    // Large enough for threads of their own where rows are kept, too.
    std::vector<Field> fields = parse_fields(
        Json::parse(R"({"value": {"columns": ["value"]}})", "test"), "fields");
    dataset_ = TableDataset::prepare(
        {{.fields = fields}, {.cache = GetParam().cache}},
        counting_store(kRows, requests_of(fields)), *device_);
  }

  Loader loader(LoaderThreads threads, std::int64_t batches) {
    return Loader(dataset_,
                  {.seed = 7,
                   .batch_size = 96,
                   .workers = threads.workers,
                   .prefetch = threads.prefetch,
                   .readers = threads.readers,
                   .batches = batches},
                  *device_);
  }
  std::vector<SampleId> next(Loader& loader) {
    std::optional<Batch> batch = loader.next(*stream_);
    if (!batch) return {};
    stream_->step(0);
    stream_->synchronize();
    const auto ids = batch->ids();
    return {ids.begin(), ids.end()};
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_ = device_->make_stream();
  std::shared_ptr<const Dataset> dataset_;
};

TEST_P(LoaderSetThreads, BatchesAndTheirOrderStayTheSame) {
  constexpr std::int64_t kBatches = 400;  // 13 epochs
  Loader calm = loader({1, 1, 2}, kBatches),
         changed = loader({1, 1, 2}, kBatches);
  if (!changed.threads()) GTEST_SKIP() << "made on the consumer's thread";
  Random random(1, 2, 3, 4);
  auto among = [&](int most) {
    return 1 + static_cast<int>(random.uniform() * most);
  };
  for (std::int64_t i = 0; i < kBatches; ++i) {
    ASSERT_EQ(next(changed), next(calm)) << i;
    if (i % 7 != 0) continue;
    LoaderThreads to{among(8), changed.threads()->readers > 0 ? among(8) : 0,
                     among(12)};
    changed.set_threads(to);
    // Towards the end there is nothing left to do for new ones.
    if (i + 50 < kBatches) {
      EXPECT_EQ(*changed.threads(), to) << i;
    }
  }
  EXPECT_TRUE(next(changed).empty());
}

TEST_P(LoaderSetThreads, TheMetersSayHowManyThereAreNow) {
  Loader of = loader({2, 2, 2}, -1);
  if (!of.threads()) GTEST_SKIP() << "made on the consumer's thread";
  next(of);
  of.set_threads({3, of.threads()->readers > 0 ? 5 : 0, 4});
  next(of);
  bool any = false;
  for (const StageNumbers& stage : of.stages()) {
    if (stage.pool == "loader") {
      EXPECT_EQ(stage.workers, 3) << stage.name;
      any = true;
    }
    if (stage.pool.ends_with("readers")) {
      EXPECT_EQ(stage.workers, 5);
    }
  }
  EXPECT_TRUE(any);
}

TEST_P(LoaderSetThreads, EndsWhileThreadsAreComingAndGoing) {
  for (int i = 0; i < 20; ++i) {
    Loader of = loader({4, 4, 4}, -1);
    if (!of.threads()) GTEST_SKIP() << "made on the consumer's thread";
    if (i % 2 == 0) next(of);
    const int readers = of.threads()->readers > 0 ? 1 : 0;
    of.set_threads({1, readers, 1});
    of.set_threads({6, 3 * readers, 3});
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, LoaderSetThreads,
                         testing::Values(Case{"cpu", "none"},
                                         Case{"sim", "none"},
                                         Case{"sim", "ram"},
                                         Case{"sim", "device"}));

}  // namespace
}  // namespace penstock
