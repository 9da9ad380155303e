#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/loader/loader.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NamedArray random_array(std::string name, Dtype dtype, Shape shape,
                        std::uint64_t seed = 1) {
  TensorView view{.dtype = dtype, .shape = std::move(shape)};
  auto bytes = std::make_shared<std::vector<std::byte>>(view.bytes());
  Random random(seed, 0, view.bytes(), static_cast<std::uint64_t>(dtype));
  for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random.next());
  view.data = bytes->data();
  return {std::move(name), std::move(view), std::move(bytes)};
}

/// Counts from 0 on: row i holds i.
NamedArray counting_array(std::string name, std::int64_t rows) {
  NamedArray array = random_array(std::move(name), Dtype::int64, {rows});
  for (std::int64_t i = 0; i < rows; ++i)
    reinterpret_cast<std::int64_t*>(array.view.data)[i] = i;
  return array;
}

std::unique_ptr<Device> open_kind(const std::string& kind) {
  return open_device({.kind = kind, .virtual_time = kind == "sim"});
}

std::vector<std::byte> on_host(const TensorView& view, Stream& stream) {
  std::vector<std::byte> host(view.bytes());
  stream.copy(host.data(), view.data, host.size());
  stream.synchronize();
  return host;
}

/// The definition of correct: row `id` of the array, or zeros.
std::vector<std::byte> rows_of(const NamedArray& array,
                               std::span<const SampleId> ids) {
  std::size_t bytes =
      array.view.bytes() / static_cast<std::size_t>(array.view.shape.at(0));
  std::vector<std::byte> all(ids.size() * bytes);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= 0 && bytes != 0)
      std::memcpy(&all[i * bytes],
                  array.view.data + static_cast<std::size_t>(ids[i]) * bytes,
                  bytes);
  return all;
}

struct Where {
  std::string device, cache;
  int workers;
};

void PrintTo(const Where& where, std::ostream* out) {
  *out << where.device << " " << where.cache << " " << where.workers
       << " workers";
}

/// Loads batches and compares each with the arrays that it is made of.
/// Returns the ids as they came.
std::vector<SampleId> expect_rows_of(const std::vector<NamedArray>& arrays,
                                     const Where& where, LoaderOptions options,
                                     const ArrayDatasetOptions& given = {}) {
  std::unique_ptr<Device> device = open_kind(where.device);
  ArrayDatasetOptions array_options = given;
  array_options.cache = where.cache;
  auto rows = std::make_shared<ArrayDataset>(arrays, array_options, *device);
  options.workers = where.workers;
  Loader loader(rows, options, *device);
  std::unique_ptr<Stream> stream = device->make_stream();
  std::vector<SampleId> ids;
  while (std::optional<Batch> batch = loader.next(*stream)) {
    std::size_t weights = options.tail == Tail::pad ? 1 : 0;
    EXPECT_EQ(batch->tensors().size(), arrays.size() + weights);
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      const NamedTensor& tensor = batch->tensors()[a];
      Shape shape = arrays[a].view.shape;
      shape[0] = batch->rows();
      EXPECT_EQ(tensor.name, arrays[a].name);
      EXPECT_EQ(tensor.view.dtype, arrays[a].view.dtype);
      EXPECT_EQ(tensor.view.shape, shape);
      EXPECT_TRUE(on_host(tensor.view, *stream) ==
                  rows_of(arrays[a], batch->ids()))
          << tensor.name << " on " << testing::PrintToString(where);
    }
    ids.insert(ids.end(), batch->ids().begin(), batch->ids().end());
  }
  return ids;
}

class ArrayRowsTest : public testing::TestWithParam<Where> {};

TEST_P(ArrayRowsTest, GivesTheRowsThatTheIdsNameInEveryDtype) {
  std::vector<NamedArray> arrays;
  for (std::size_t d = 0; d < kDtypes; ++d) {
    auto dtype = static_cast<Dtype>(d);
    arrays.push_back(
        random_array("row of " + std::string(name_of(dtype)), dtype, {333}));
    arrays.push_back(random_array("rows of " + std::string(name_of(dtype)),
                                  dtype, {333, 2, 3}));
  }
  expect_rows_of(arrays, GetParam(),
                 {.tail = Tail::pad, .batch_size = 100, .batches = 9});
}

TEST_P(ArrayRowsTest, GivesRowsOfAnyLength) {
  std::vector<NamedArray> arrays;
  for (std::int64_t bytes :
       {3, 0, 1, 24, 63, 64, 65, 127, 1000, 1024, 2047, 2048, 2049, 4100})
    arrays.push_back(
        random_array(std::to_string(bytes), Dtype::uint8, {333, bytes}));
  expect_rows_of(arrays, GetParam(), {.batch_size = 70, .batches = 9});
}

TEST_P(ArrayRowsTest, GivesTheSameBatchesAsAlways) {
  std::vector<SampleId> ids = expect_rows_of(
      {counting_array("n", 1000)}, GetParam(),
      {.seed = 7, .tail = Tail::exact, .batch_size = 96, .batches = 22});
  static const std::vector<SampleId> first = ids;
  EXPECT_EQ(ids, first);
  EXPECT_EQ(ids.size(), 2000u);
}

// A table on the device is filled in pieces of 4 MiB.
TEST_P(ArrayRowsTest, TakesArraysThatAreLongerThanAPiece) {
  std::vector<NamedArray> arrays = {
      random_array("x", Dtype::float32, {3000, 1000}),
      random_array("y", Dtype::uint8, {3000, 3}),
      random_array("long", Dtype::uint8, {3000, 4099})};
  expect_rows_of(arrays, GetParam(), {.batch_size = 500, .batches = 6});
}

// A batch has its own memory: once the loader has ended it needs no rows.
TEST_P(ArrayRowsTest, LetsTheOwnersGoWithTheLoader) {
  std::unique_ptr<Device> device = open_kind(GetParam().device);
  NamedArray array = random_array("x", Dtype::float32, {100, 4});
  std::weak_ptr<const void> owner = array.owner;
  std::vector<std::byte> expected;
  std::unique_ptr<Stream> stream = device->make_stream();
  std::optional<Batch> last;
  {
    auto rows = std::make_shared<ArrayDataset>(
        std::vector<NamedArray>{array},
        ArrayDatasetOptions{.cache = GetParam().cache}, *device);
    LoaderOptions options{.batch_size = 10, .workers = GetParam().workers};
    Loader loader(std::move(rows), options, *device);
    for (int i = 0; i < 5; ++i) last = loader.next(*stream);
    expected = rows_of(array, last->ids());
    array.owner.reset();
    EXPECT_FALSE(owner.expired()) << "the loader holds it";
  }
  EXPECT_TRUE(owner.expired());
  EXPECT_TRUE(on_host(last->tensors()[0].view, *stream) == expected);
}

TEST_P(ArrayRowsTest, HoldsNothingWhenALoaderIsDroppedHalfWay) {
  std::unique_ptr<Device> device = open_kind(GetParam().device);
  NamedArray array = random_array("x", Dtype::float64, {5000, 16});
  std::weak_ptr<const void> owner = array.owner;
  for (int taken : {0, 1, 3}) {
    Loader loader(std::make_shared<ArrayDataset>(
                      std::vector<NamedArray>{array},
                      ArrayDatasetOptions{.cache = GetParam().cache}, *device),
                  {.batch_size = 64, .workers = GetParam().workers}, *device);
    for (int i = 0; i < taken; ++i) loader.next();
  }
  array = {};
  EXPECT_TRUE(owner.expired());
}

TEST_P(ArrayRowsTest, ASideIsAListOfRowsInItsOrder) {
  ArrayDatasetOptions sides{.train = {{5, 0, 9, 5}}, .val = {{3, 1}}};
  std::vector<NamedArray> arrays = {counting_array("n", 10)};
  EXPECT_THAT(
      expect_rows_of(
          arrays, GetParam(),
          {.shuffle = false, .tail = Tail::pad, .batch_size = 3, .batches = 2},
          sides),
      ElementsAre(5, 0, 9, 5, -1, -1));
  EXPECT_THAT(
      expect_rows_of(
          arrays, GetParam(),
          {.side = Side::val, .shuffle = false, .batch_size = 2, .batches = 2},
          sides),
      ElementsAre(3, 1, 3, 1));
}

INSTANTIATE_TEST_SUITE_P(
    All, ArrayRowsTest,
    testing::Values(Where{"cpu", "ram", 0}, Where{"cpu", "ram", 1},
                    Where{"cpu", "ram", 2}, Where{"cpu", "ram", 8},
                    Where{"cpu", "device", 0}, Where{"cpu", "device", 2},
                    Where{"sim", "ram", 0}, Where{"sim", "ram", 1},
                    Where{"sim", "ram", 2}, Where{"sim", "ram", 8},
                    Where{"sim", "device", 0}, Where{"sim", "device", 1},
                    Where{"sim", "device", 2}, Where{"sim", "device", 8},
                    Where{"sim", "auto", 2}));

TEST(ArrayRowsFuzz, AnyShapesMakeTheRowsThatTheIdsName) {
  const char* devices[] = {"cpu", "sim"};
  const char* caches[] = {"auto", "ram", "device"};
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Random random(seed, 0, 0, 0);
    auto rows = static_cast<std::int64_t>(1 + random.below(300));
    std::vector<NamedArray> arrays;
    for (std::size_t a = 0, count = 1 + random.below(5); a < count; ++a) {
      Shape shape = {rows};
      for (std::size_t d = random.below(4); d > 0; --d)
        shape.push_back(static_cast<std::int64_t>(random.below(9)));
      arrays.push_back(random_array(std::to_string(a),
                                    static_cast<Dtype>(random.below(kDtypes)),
                                    std::move(shape), seed));
    }
    Where where{devices[random.below(2)], caches[random.below(3)],
                static_cast<int>(random.below(4))};
    LoaderOptions options{
        .seed = seed,
        .shuffle = random.below(2) == 0,
        .tail = random.below(2) == 0 ? Tail::pad : Tail::exact,
        .batch_size = static_cast<std::int64_t>(1 + random.below(400)),
        .prefetch = static_cast<int>(random.below(4)),
        .batches = 5};
    expect_rows_of(arrays, where, options);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

class ArrayRefusals : public testing::Test {
 protected:
  ErrorParts refusal(std::vector<NamedArray> arrays,
                     ArrayDatasetOptions options = {}) {
    try {
      ArrayDataset(std::move(arrays), options, *device_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      return error.parts();
    }
    ADD_FAILURE() << "nothing was refused";
    return {};
  }
  std::unique_ptr<Device> device_ = open_kind("cpu");
};

TEST_F(ArrayRefusals, RaggedLengthsNameBoth) {
  ErrorParts parts =
      refusal({counting_array("x", 100), counting_array("y", 99)});
  EXPECT_EQ(parts.code, "arrays.length");
  EXPECT_THAT(parts.where, HasSubstr("'y'"));
  EXPECT_THAT(parts.why, HasSubstr("99 rows, and 'x' has 100"));
}

TEST_F(ArrayRefusals, NoRowsAndNoArrayAreNothingToLoad) {
  ErrorParts parts = refusal({random_array("x", Dtype::float32, {0, 4})});
  EXPECT_EQ(parts.code, "arrays.empty");
  EXPECT_THAT(parts.why, HasSubstr("[0, 4]"));
  EXPECT_EQ(refusal({}).code, "arrays.none");
}

TEST_F(ArrayRefusals, ASingleValueHasNoRows) {
  ErrorParts parts = refusal({random_array("x", Dtype::float32, {})});
  EXPECT_EQ(parts.code, "arrays.shape");
  EXPECT_THAT(parts.where, HasSubstr("'x'"));
}

TEST_F(ArrayRefusals, EachArrayHasANameOfItsOwn) {
  EXPECT_EQ(refusal({counting_array("", 1)}).code, "arrays.name");
  ErrorParts parts = refusal({counting_array("x", 1), counting_array("x", 1)});
  EXPECT_EQ(parts.code, "arrays.name");
  EXPECT_THAT(parts.where, HasSubstr("'x'"));
}

TEST_F(ArrayRefusals, ArraysInADevicesMemoryAreNotRead) {
  for (MemoryKind memory : {MemoryKind::cuda, MemoryKind::sim}) {
    NamedArray array = counting_array("x", 3);
    array.view.memory = memory;
    EXPECT_EQ(refusal({array}).code, "arrays.memory");
  }
}

TEST_F(ArrayRefusals, PinnedMemoryIsTheHosts) {
  NamedArray array = counting_array("x", 3);
  array.view.memory = MemoryKind::cuda_host;
  EXPECT_EQ(ArrayDataset({array}, {}, *device_).rows(), 3);
}

TEST_F(ArrayRefusals, ThereIsNoTierWithoutThem) {
  ErrorParts parts = refusal({counting_array("x", 3)}, {.cache = "none"});
  EXPECT_EQ(parts.code, "arrays.cache");
  EXPECT_THAT(parts.why, HasSubstr("\"none\""));
}

TEST_F(ArrayRefusals, ARowNumberIsOneOfTheArrays) {
  for (SampleId wrong : {-1, 3}) {
    EXPECT_EQ(refusal({counting_array("x", 3)}, {.train = {{0, wrong}}}).code,
              "arrays.ids");
    ErrorParts parts = refusal({counting_array("x", 3)}, {.val = {{wrong}}});
    EXPECT_EQ(parts.where, "val");
    EXPECT_THAT(parts.why, HasSubstr(std::to_string(wrong)));
  }
}

TEST_F(ArrayRefusals, ASideWithoutRowsMakesNoLoader) {
  auto rows = std::make_shared<ArrayDataset>(
      std::vector<NamedArray>{counting_array("x", 3)}, ArrayDatasetOptions{},
      *device_);
  EXPECT_EQ(rows->rows_on(Side::train), 3);
  EXPECT_EQ(rows->rows_on(Side::val), 0);
  EXPECT_EQ(rows->rows_on(Side::unused), 0);
  try {
    Loader(rows, {.side = Side::val, .batch_size = 1}, *device_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "loader.empty_side");
  }
}

TEST_F(ArrayRefusals, PaddingNeedsTheNameOfItsWeights) {
  auto rows = std::make_shared<ArrayDataset>(
      std::vector<NamedArray>{counting_array("weight", 3)},
      ArrayDatasetOptions{}, *device_);
  try {
    Loader(rows, {.tail = Tail::pad, .batch_size = 2}, *device_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "loader.weight");
  }
  Loader loader(rows, {.tail = Tail::exact, .batch_size = 2}, *device_);
  EXPECT_EQ(loader.next()->tensors()[0].name, "weight");
}

TEST(ArrayPlan, OnTheHostArraysAreUsedWhereTheyLie) {
  std::unique_ptr<Device> device = open_kind("cpu");
  std::string shown;
  ArrayDataset rows(
      {counting_array("x", 1000)},
      {.planned = [&](const TierPlan& plan) { shown = plan.text(); }}, *device);
  EXPECT_EQ(rows.plan().tier, Tier::ram);
  EXPECT_EQ(rows.plan().lines[1].rows_bytes, 0u);
  EXPECT_THAT(shown, HasSubstr("the arrays are used in place"));
}

TEST(ArrayPlan, ArraysAreNotKeptInStores) {
  std::unique_ptr<Device> device = open_kind("cpu");
  try {
    ArrayDataset({counting_array("x", 10)}, {.cache = "disk"}, *device);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("arrays are already in memory"));
  }
}

TEST(ArrayPlan, TakesTheMemoryThatItPredicts) {
  std::unique_ptr<Device> device = open_kind("sim");
  std::vector<NamedArray> arrays = {random_array("x", Dtype::float32, {500, 8}),
                                    random_array("y", Dtype::int16, {500})};
  LoaderOptions options{.batch_size = 64, .workers = 2};
  RingBytes ring =
      ring_bytes(options, {.rows = arrays[0].view.shape[0],
                           .outputs = outputs_of(layout_of(arrays))});
  std::size_t before = device->memory().free;
  auto rows = std::make_shared<ArrayDataset>(
      arrays, ArrayDatasetOptions{.ring_bytes = ring}, *device);
  Loader loader(rows, options, *device);
  ASSERT_EQ(rows->plan().tier, Tier::device);
  EXPECT_EQ(before - device->memory().free, rows->plan().lines[0].device_bytes);
}

TEST(ArrayPlan, ArraysThatAreTooLargeForTheDeviceStayOnTheHost) {
  std::unique_ptr<Device> device =
      open_device({.kind = "sim", .memory_gib = 1.0 / 1024});
  ArrayDataset rows({random_array("x", Dtype::float32, {1000, 256})}, {},
                    *device);
  EXPECT_EQ(rows.plan().tier, Tier::ram);
  EXPECT_EQ(device->memory().free, std::size_t{1} << 20);
}

TEST(ArrayFingerprint, ChangesWithAllThatMakesTheRows) {
  std::unique_ptr<Device> device = open_kind("cpu");
  auto fingerprint = [&](NamedArray array, ArrayDatasetOptions options = {}) {
    return ArrayDataset({std::move(array)}, options, *device).fingerprint();
  };
  NamedArray array = random_array("x", Dtype::float32, {1000, 600});
  std::string first = fingerprint(array);
  EXPECT_EQ(first.size(), 64u);
  NamedArray same = random_array("x", Dtype::float32, {1000, 600});
  EXPECT_EQ(fingerprint(same), first);
  same.view.data[2'399'999] ^= std::byte{1};
  EXPECT_NE(fingerprint(same), first) << "the last byte";
  NamedArray changed = array;
  changed.name = "y";
  EXPECT_NE(fingerprint(changed), first);
  changed = array;
  changed.view.dtype = Dtype::int32;
  EXPECT_NE(fingerprint(changed), first);
  changed = array;
  changed.view.shape = {1000, 300, 2};
  EXPECT_NE(fingerprint(changed), first);
  EXPECT_NE(fingerprint(array, {.train = {{1, 2}}}),
            fingerprint(array, {.train = {{2, 1}}}));
  EXPECT_NE(fingerprint(array, {.val = {{1}}}), first);
}

TEST(ArrayFingerprint, IsTheSameInEveryTier) {
  std::unique_ptr<Device> sim = open_kind("sim");
  std::vector<NamedArray> arrays = {random_array("x", Dtype::float16, {99, 7})};
  EXPECT_EQ(ArrayDataset(arrays, {.cache = "device"}, *sim).fingerprint(),
            ArrayDataset(arrays, {.cache = "ram"}, *sim).fingerprint());
}

}  // namespace
}  // namespace penstock
