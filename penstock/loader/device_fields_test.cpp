#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/sources/fake/fake_store.h"
#include "penstock/transforms/fake/noisy.h"

// Fields that a device finishes: whatever its memory holds, the bytes are those
// that the host would have made.

namespace penstock {
namespace {

using testing::HasSubstr;

class DeviceFields : public testing::TestWithParam<TierCase> {
 protected:
  DeviceFields() {
    words_.add_number();
    words_.add_strip();
    words_.add("noisy", std::make_shared<Noisy>("noisy", "number"));
    words_.options.cache = GetParam().cache;
    options_ = {
        .tail = Tail::pad, .batch_size = 64, .workers = GetParam().workers};
    options_.batches = 12;
  }

  std::vector<SeenBatch> run() {
    return seen_batches(words_.prepare(*device_), options_, *device_);
  }
  /// The same on one thread of the host.
  std::vector<SeenBatch> run_plainly() {
    std::unique_ptr<Device> cpu = open_for_test("cpu");
    WordsDataset words = words_;
    words.options.cache = "ram";
    LoaderOptions options = options_;
    options.workers = 0;
    return seen_batches(words.prepare(*cpu), options, *cpu);
  }

  std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
  WordsDataset words_;
  LoaderOptions options_;
};

TEST_P(DeviceFields, HaveTheBytesThatTheHostMakes) {
  bool there = GetParam().on_sim();
  EXPECT_EQ(
      words_.prepare(*device_)->facts().device_fields_of(Side::train).size(),
      there ? 2u : 0u);
  std::vector<SeenBatch> seen = run();
  EXPECT_EQ(seen, run_plainly());
  ASSERT_EQ(seen.size(), 12u);
  EXPECT_NE(seen[0].bytes["strip"], seen[5].bytes["strip"])
      << "drawn anew in each epoch";
  options_.start = {1, 2};
  options_.batches = 1;
  EXPECT_EQ(run()[0], seen[7]) << "after a restart too";
}

TEST_P(DeviceFields, PaddingIsZeros) {
  options_.start = {0, 4};
  options_.batches = 1;
  SeenBatch last = run()[0];
  std::size_t rows = 300 % 64;
  for (const char* name : {"strip", "noisy", "noisy_value", "number"}) {
    const std::string& bytes = last.bytes[name];
    std::size_t each = bytes.size() / 64;
    EXPECT_EQ(bytes.substr(rows * each), std::string((64 - rows) * each, '\0'))
        << name;
  }
}

TEST_P(DeviceFields, OnTheOtherSideNothingIsDrawn) {
  words_.options.split = {.train = 0.5, .val = 0.5};
  options_.side = Side::val;
  options_.batches = 4;
  EXPECT_EQ(run(), run_plainly());
}

TEST_P(DeviceFields, AreFinishedBeforeTheBatchIsMixed) {
  options_.operations = {{.kind = make_mixup({.outputs = {"noisy_value"}})}};
  std::vector<SeenBatch> mixed = run();
  EXPECT_EQ(mixed, run_plainly());
  options_.operations.clear();
  EXPECT_NE(mixed[0].bytes["noisy_value"], run()[0].bytes["noisy_value"]);
}

TEST_P(DeviceFields, StandBesideFieldsThatDifferInLength) {
  if (GetParam().kept_on_sim()) return;  // these are filled on the host
  words_.add_letters(Lengths::padded);
  EXPECT_EQ(run(), run_plainly());
}

TEST_P(DeviceFields, TakeTheMemoryThatIsPredicted) {
  WordsDataset words(2000);
  words.options.cache = GetParam().cache;
  words.add("noisy", std::make_shared<Noisy>("noisy", "number"));
  if (std::string(GetParam().cache) == "device") words.add_strip();
  auto set = words.prepare(*device_);
  std::size_t before = device_->memory().free;
  LoaderOptions options = options_;
  options.batches = 30;
  Loader loader(set, options, *device_);
  while (loader.next()) continue;
  if (!GetParam().on_sim()) return;
  EXPECT_EQ(before - device_->memory().free,
            ring_bytes(options, set->facts()).device);
}

TEST_P(DeviceFields, AFunctionSeesThemFinished) {
  auto first_of_strip = [](std::shared_ptr<const Dataset> rows,
                           Device& device) {
    RowFunction function{
        .layout = layout_of_tensors(
            {{.name = "first", .dtype = Dtype::uint8, .row_shape = {8}}}),
        .fingerprint = "first",
        .call = [](const RowCall& call) {
          std::memcpy(call.out[0].data, call.in[1].data, 8 * call.ids.size());
        }};
    return std::make_shared<FunctionDataset>(std::move(rows),
                                             std::move(function), device);
  };
  std::vector<SeenBatch> seen = seen_batches(
      first_of_strip(words_.prepare(*device_), *device_), options_, *device_);
  std::vector<SeenBatch> whole = run_plainly();
  ASSERT_EQ(seen.size(), whole.size());
  for (std::size_t b = 0; b < seen.size(); ++b)
    EXPECT_TRUE(seen[b].bytes["first"] == whole[b].bytes["strip"]) << b;
}

INSTANTIATE_TEST_SUITE_P(
    All, DeviceFields,
    testing::Values(TierCase{"cpu", "ram", 0}, TierCase{"cpu", "none", 2},
                    TierCase{"sim", "ram", 0}, TierCase{"sim", "ram", 1},
                    TierCase{"sim", "ram", 8}, TierCase{"sim", "none", 0},
                    TierCase{"sim", "none", 2}, TierCase{"sim", "device", 0},
                    TierCase{"sim", "device", 1},
                    TierCase{"sim", "device", 8}));

TEST(DeviceFieldsPlan, RowsThatADeviceFinishesAreKeptThere) {
  auto device = open_for_test("sim");
  WordsDataset words;
  words.add_strip();
  words.options.cache = "auto";
  EXPECT_EQ(words.prepare(*device)->plan().tier, Tier::device);
}

TEST(DeviceFieldsPlan, WhatTheHostMixesItFinishesToo) {
  auto device = open_for_test("sim");
  WordsDataset words;
  words.add_strip();
  words.options.cache = "auto";
  words.options.batches_on_host = true;
  auto set = words.prepare(*device);
  EXPECT_EQ(set->plan().tier, Tier::ram);
  EXPECT_TRUE(set->facts().device_fields_of(Side::train).empty());
  EXPECT_EQ(seen_batches(set, {.batches = 2}, *device).size(), 2u);
}

/// Rows 0 .. 99 hold their number, row 43 its negative.
std::unique_ptr<FakeStore> store(const std::vector<Field>& fields) {
  Block block;
  block.rows = 100;
  block.columns.push_back({.type = ColumnType::float64});
  for (std::int64_t row = 0; row < block.rows; ++row)
    block.columns[0].append_float64(
        static_cast<double>(row == 43 ? -row : row));
  block.columns[0].length = block.rows;
  return std::make_unique<FakeStore>(std::vector<std::string>{"number"},
                                     std::move(block), requests_of(fields),
                                     FakeStoreTrouble());
}

TEST(DeviceFieldsByPosition, BadSamplesAreMaskedAndSubstitutedAsOnTheHost) {
  std::vector<Field> fields = {
      {"noisy", std::make_shared<Noisy>("noisy", "number")}};
  for (OnBad on_bad : {OnBad::mask, OnBad::substitute})
    for (int workers : {0, 2}) {
      LoaderOptions options{.tail = Tail::pad,
                            .batch_size = 32,
                            .workers = workers,
                            .on_bad = on_bad,
                            .batches = 8};
      std::vector<std::vector<SeenBatch>> seen;
      for (std::string kind : {"cpu", "sim"}) {
        auto device = open_for_test(kind);
        auto set = std::make_shared<IndexedDataset>(
            IndexedOptions{.fields = fields,
                           .finish_on = device->memory_kind()},
            store(fields));
        EXPECT_EQ(set->facts().device_fields_of(Side::train).size(),
                  kind == "sim" ? 1u : 0u);
        seen.push_back(seen_batches(set, options, *device));
      }
      ASSERT_EQ(seen[0].size(), seen[1].size());
      for (std::size_t b = 0; b < seen[0].size(); ++b)
        EXPECT_TRUE(seen[0][b] == seen[1][b]) << b;
      EXPECT_EQ(std::ranges::count_if(seen[1],
                                      [](const SeenBatch& batch) {
                                        return !batch.rejected.empty();
                                      }),
                2)
          << "once in each epoch";
    }
}

}  // namespace
}  // namespace penstock
