#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>

#include "penstock/loader/loader.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<std::int64_t> numbers(const TensorView& view) {
  return {reinterpret_cast<std::int64_t*>(view.data),
          static_cast<std::size_t>(elements_of(view.shape))};
}

RowLayout one_number() {
  return layout_of_tensors({{.name = "n", .dtype = Dtype::int64}});
}

/// Row i is i squared.
RowFunction squares() {
  return {.layout = one_number(),
          .fingerprint = "squares",
          .call = [](const RowCall& call) {
            for (std::size_t i = 0; i < call.ids.size(); ++i)
              numbers(call.out[0])[i] = call.ids[i] * call.ids[i];
          }};
}

/// Adds `more` to what it maps, and tells the row's own number beside it.
RowFunction adding(std::int64_t more) {
  RowLayout layout = layout_of_tensors(
      {{.name = "sum", .dtype = Dtype::int64},
       {.name = "ids", .dtype = Dtype::int64, .row_shape = {2}}});
  return {.layout = std::move(layout),
          .fingerprint = "adding " + std::to_string(more),
          .call = [more](const RowCall& call) {
            for (std::size_t i = 0; i < call.ids.size(); ++i) {
              numbers(call.out[0])[i] = numbers(call.in[0])[i] + more;
              numbers(call.out[1])[2 * i] = call.ids[i];
              numbers(call.out[1])[2 * i + 1] = call.at.step;
            }
          }};
}

/// An augmentation: noise that a row draws again in each epoch.
RowFunction noisy(std::uint64_t seed) {
  return {.layout = one_number(),
          .fingerprint = "noise of seed " + std::to_string(seed),
          .call = [seed](const RowCall& call) {
            for (std::size_t i = 0; i < call.ids.size(); ++i) {
              Random noise(seed, static_cast<std::uint64_t>(call.at.epoch),
                           static_cast<std::uint64_t>(call.ids[i]), 0);
              numbers(call.out[0])[i] =
                  numbers(call.in[0])[i] +
                  static_cast<std::int64_t>(noise.below(1'000'000));
            }
          }};
}

/// The array 100, 101, ... 111.
std::shared_ptr<const Dataset> an_array(Device& device,
                                        const std::string& cache = "auto") {
  auto values = std::make_shared<std::vector<std::int64_t>>(12);
  std::iota(values->begin(), values->end(), 100);
  TensorView view{.data = reinterpret_cast<std::byte*>(values->data()),
                  .dtype = Dtype::int64,
                  .shape = {12}};
  return std::make_shared<ArrayDataset>(
      std::vector<NamedArray>{{"values", view, values}},
      ArrayDatasetOptions{.cache = cache}, device);
}

struct Case {
  std::string device;
  int workers;
};

class MadeRowsTest : public testing::TestWithParam<Case> {
 protected:
  LoaderOptions options(std::int64_t batches, Tail tail = Tail::drop) const {
    return {.shuffle = false,
            .tail = tail,
            .batch_size = 5,
            .workers = GetParam().workers,
            .batches = batches};
  }
  /// All of tensor `t` that `batches` batches hold.
  std::vector<std::int64_t> drawn(std::shared_ptr<const Dataset> rows,
                                  const LoaderOptions& options,
                                  std::size_t t = 0) {
    Loader loader(std::move(rows), options, *device_);
    std::unique_ptr<Stream> stream = device_->make_stream();
    std::vector<std::int64_t> all;
    while (std::optional<Batch> batch = loader.next(*stream)) {
      stream->synchronize();
      std::span seen = numbers(batch->tensors()[t].view);
      all.insert(all.end(), seen.begin(), seen.end());
    }
    return all;
  }
  std::unique_ptr<Device> device_ = open_device(
      {.kind = GetParam().device, .virtual_time = GetParam().device == "sim"});
};

TEST_P(MadeRowsTest, AFunctionMakesRowsOfTheirNumbers) {
  auto rows = std::make_shared<FunctionDataset>(10, squares());
  EXPECT_EQ(rows->rows(), 10);
  EXPECT_EQ(rows->rows_on(Side::train), 10);
  EXPECT_EQ(rows->rows_on(Side::val), 0);
  EXPECT_THAT(drawn(rows, options(2)),
              ElementsAre(0, 1, 4, 9, 16, 25, 36, 49, 64, 81));
}

TEST_P(MadeRowsTest, PaddingIsZerosAndNotGivenToTheFunction) {
  std::atomic<bool> padded{false};
  RowFunction function = squares();
  function.call = [&padded](const RowCall& call) {
    for (std::size_t i = 0; i < call.ids.size(); ++i) {
      if (call.ids[i] < 0) padded = true;
      numbers(call.out[0])[i] = call.ids[i] + 1;
    }
  };
  auto rows = std::make_shared<FunctionDataset>(7, std::move(function));
  EXPECT_THAT(drawn(rows, options(2, Tail::pad)),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 0, 0, 0));
  EXPECT_FALSE(padded);
}

TEST_P(MadeRowsTest, RowsAreMappedWhereverTheyLive) {
  for (std::string cache : {"ram", "device"}) {
    auto mapped = std::make_shared<FunctionDataset>(an_array(*device_, cache),
                                                    adding(1000), *device_);
    EXPECT_EQ(mapped->rows(), 12);
    EXPECT_THAT(drawn(mapped, options(1)),
                ElementsAre(1100, 1101, 1102, 1103, 1104))
        << cache;
    EXPECT_THAT(drawn(mapped, options(2), 1),
                ElementsAre(0, 0, 1, 0, 2, 0, 3, 0, 4, 0,  //
                            5, 1, 6, 1, 7, 1, 8, 1, 9, 1));
  }
}

TEST_P(MadeRowsTest, MapsOfMapsAreMappedInTurn) {
  auto once = std::make_shared<FunctionDataset>(an_array(*device_), adding(10),
                                                *device_);
  auto twice = std::make_shared<FunctionDataset>(once, adding(200), *device_);
  EXPECT_THAT(drawn(twice, options(1)), ElementsAre(310, 311, 312, 313, 314));
  EXPECT_NE(once->fingerprint(), twice->fingerprint());
}

TEST_P(MadeRowsTest, ARandomAugmentationIsTheSameForAnyWorkersAndAnyStart) {
  std::vector<std::int64_t> expected;  // two epochs of twelve rows, in order
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
    for (std::uint64_t id = 0; id < 12; ++id)
      expected.push_back(
          100 + static_cast<std::int64_t>(id) +
          static_cast<std::int64_t>(Random(3, epoch, id, 0).below(1'000'000)));
  EXPECT_NE(expected[12], expected[0]);
  auto rows =
      std::make_shared<FunctionDataset>(an_array(*device_), noisy(3), *device_);
  LoaderOptions all = options(6, Tail::exact);
  EXPECT_EQ(drawn(rows, all), expected);
  all.start = {.epoch = 1, .step = 1};
  all.batches = 2;
  EXPECT_EQ(drawn(rows, all),
            std::vector(expected.begin() + 17, expected.end()));
}

TEST_P(MadeRowsTest, AFunctionOfWholeBatchesGetsThem) {
  RowFunction sum{.layout = one_number(),
                  .fingerprint = "sum",
                  .whole_batches = true,
                  .call = [](const RowCall& call) {
                    std::span in = numbers(call.in[0]);
                    std::span out = numbers(call.out[0]);
                    std::ranges::fill(out, std::accumulate(in.begin(), in.end(),
                                                           std::int64_t{0}));
                  }};
  auto rows =
      std::make_shared<FunctionDataset>(an_array(*device_), sum, *device_);
  EXPECT_THAT(drawn(rows, options(2)),
              ElementsAre(510, 510, 510, 510, 510, 535, 535, 535, 535, 535));
  // A row-wise function of whole batches still needs whole ones.
  auto more = std::make_shared<FunctionDataset>(rows, adding(1), *device_);
  EXPECT_TRUE(more->facts().whole_batches);
  EXPECT_THAT(drawn(more, options(1)), ElementsAre(511, 511, 511, 511, 511));
}

TEST_P(MadeRowsTest, WhoKeepsTheMemoryOfACallMayGoOnReadingIt) {
  Mutex mutex;
  std::vector<std::pair<RowCall, std::vector<std::int64_t>>> kept;
  std::vector<std::vector<TensorView>> views;
  RowFunction keeping = squares();
  keeping.whole_batches = true;
  keeping.call = [&](const RowCall& call) {
    Lock lock(mutex);
    views.emplace_back(call.in.begin(), call.in.end());
    std::span in = numbers(call.in[0]);
    kept.emplace_back(call, std::vector(in.begin(), in.end()));
    std::ranges::fill(numbers(call.out[0]), 0);
  };
  auto rows =
      std::make_shared<FunctionDataset>(an_array(*device_), keeping, *device_);
  drawn(rows, options(6));
  ASSERT_EQ(kept.size(), 6u);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    std::span in = numbers(views[i][0]);
    EXPECT_EQ(std::vector(in.begin(), in.end()), kept[i].second);
  }
}

TEST_P(MadeRowsTest, AnErrorComesInItsTurnWithItsCause) {
  auto cause = std::make_shared<int>(1);
  RowFunction bad = squares();
  bad.call = [&](const RowCall& call) {
    numbers(call.out[0])[0] = 0;
    for (SampleId id : call.ids)
      if (id == 7)
        throw Error(ErrorKind::transform, {.code = "x.y", .what = "row 7"})
            .caused_by(cause);
  };
  Loader loader(std::make_shared<FunctionDataset>(20, bad), options(-1),
                *device_);
  EXPECT_TRUE(loader.next().has_value());
  for (int again = 0; again < 2; ++again) {
    try {
      loader.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("row 7"));
      EXPECT_EQ(error.cause(), cause);
    }
  }
}

TEST_P(MadeRowsTest, TheStagesAreThoseThatWork) {
  auto names = [&](std::shared_ptr<const Dataset> rows) {
    Loader loader(std::move(rows), options(1), *device_);
    while (loader.next()) {
    }
    std::vector<std::string> all;
    for (const StageNumbers& stage : loader.stages()) all.push_back(stage.name);
    return all;
  };
  EXPECT_THAT(names(std::make_shared<FunctionDataset>(10, squares())),
              ElementsAre("plan", "read", "deliver"));
  EXPECT_THAT(names(std::make_shared<FunctionDataset>(an_array(*device_),
                                                      adding(1), *device_)),
              ElementsAre("plan", "gather", "map", "deliver"));
}

INSTANTIATE_TEST_SUITE_P(Devices, MadeRowsTest,
                         testing::Values(Case{"cpu", 0}, Case{"cpu", 1},
                                         Case{"cpu", 2}, Case{"cpu", 8},
                                         Case{"sim", 0}, Case{"sim", 1},
                                         Case{"sim", 2}, Case{"sim", 8}),
                         [](const auto& info) {
                           return info.param.device +
                                  std::to_string(info.param.workers);
                         });

TEST(FunctionDataset, TheFingerprintIsThatOfTheFunctionAndOfWhatItMaps) {
  RowFunction other = squares();
  other.fingerprint = "squares, version 2";
  std::string first = FunctionDataset(10, squares()).fingerprint();
  EXPECT_EQ(first, FunctionDataset(10, squares()).fingerprint());
  EXPECT_NE(first, FunctionDataset(11, squares()).fingerprint());
  EXPECT_NE(first, FunctionDataset(10, other).fingerprint());
}

TEST(FunctionDataset, TensorsWithoutElementsAndWithoutRowsAreFine) {
  RowLayout layout = layout_of_tensors(
      {{.name = "none", .dtype = Dtype::float32, .row_shape = {0, 3}},
       {.name = "n", .dtype = Dtype::uint8}});
  EXPECT_EQ(layout.row_bytes, 1u);
  EXPECT_EQ(layout.tensors[1].offset, 0u);
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  auto rows = std::make_shared<FunctionDataset>(
      3, RowFunction{.layout = layout, .call = [](const RowCall& call) {
                       *call.out[1].data = std::byte{9};
                     }});
  LoaderOptions options{.shuffle = false, .batch_size = 1, .workers = 0};
  Loader loader(rows, options, *device);
  std::optional<Batch> batch = loader.next();
  EXPECT_EQ(batch->tensors()[0].view.shape, (Shape{1, 0, 3}));
  EXPECT_EQ(*batch->tensors()[1].view.data, std::byte{9});
}

}  // namespace
}  // namespace penstock
