#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "penstock/loader/loader.h"
#include "penstock/sources/fake/fake_store.h"
#include "penstock/transforms/fake/letters.h"
#include "penstock/transforms/fake/strip.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kRows = 200;

std::string letters_of(std::int64_t row) {
  std::string text;
  for (std::int64_t i = 0; i < row % 7; ++i)
    text += static_cast<char>('a' + (row + i) % 26);
  return text;
}

/// Row i: the number i, a text of i % 7 letters, a strip of 8 + i % 5 bytes.
Block rows_of(std::int64_t count) {
  Block block;
  block.rows = count;
  for (ColumnType type :
       {ColumnType::float64, ColumnType::text, ColumnType::text})
    block.columns.push_back({.type = type});
  for (std::int64_t row = 0; row < count; ++row) {
    block.columns[0].append_float64(static_cast<double>(row));
    block.columns[1].append_text(letters_of(row));
    block.columns[2].append_text(
        std::string(static_cast<std::size_t>(8 + row % 5),
                    static_cast<char>('a' + row % 26)));
  }
  for (Column& column : block.columns) column.length = count;
  return block;
}

class IndexedTest : public testing::TestWithParam<int> {
 protected:
  IndexedTest() {
    add_number();
    loading_ = {.tail = Tail::exact,
                .batch_size = 32,
                .workers = GetParam(),
                .batches = 14};
  }

  void add_number() {
    options_.fields = parse_fields(
        Json::parse(R"({"number": {"columns": ["number"]}})", "test"),
        "fields");
  }
  void add_text(Lengths lengths) {
    options_.fields.push_back(
        {"text", std::make_shared<Letters>("text", "text", lengths)});
  }
  void add_strip() {
    options_.fields.push_back(
        {"strip", std::make_shared<Strip>("strip", "strip", 8)});
  }

  std::unique_ptr<FakeStore> store() {
    auto made = std::make_unique<FakeStore>(
        std::vector<std::string>{"number", "text", "strip"}, rows_of(kRows),
        requests_of(options_.fields), trouble_);
    store_ = made.get();
    return made;
  }

  /// By sample: the bytes of a tensor's row, which has a fixed size.
  std::map<SampleId, std::string> rows(const std::string& name) {
    return rows(name, std::make_shared<IndexedDataset>(options_, store()));
  }
  std::map<SampleId, std::string> rows(
      const std::string& name, const std::shared_ptr<IndexedDataset>& set) {
    Loader loader(set, loading_, *device_);
    std::map<SampleId, std::string> seen;
    while (std::optional<Batch> batch = loader.next()) {
      batch->wait();
      for (const NamedTensor& tensor : batch->tensors()) {
        if (tensor.name != name) continue;
        std::size_t bytes = tensor.view.bytes() / batch->ids().size();
        for (std::size_t row = 0; row < batch->ids().size(); ++row)
          seen[batch->ids()[row]] = {
              reinterpret_cast<const char*>(tensor.view.data) + row * bytes,
              bytes};
      }
      for (const RejectedSample& bad : batch->rejected())
        rejected_[bad.sample] = bad.place + ": " + bad.why;
    }
    return seen;
  }

  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  IndexedOptions options_;
  FakeStoreTrouble trouble_;
  FakeStore* store_ = nullptr;
  LoaderOptions loading_;
  std::map<SampleId, std::string> rejected_;
};

TEST_P(IndexedTest, SamplesAreReadByPositionWithoutAScan) {
  auto set = std::make_shared<IndexedDataset>(options_, store());
  EXPECT_EQ(store_->counts().reads, 0);
  EXPECT_EQ(set->rows(), kRows);
  EXPECT_EQ(set->plan().tier, Tier::none);
  EXPECT_EQ(set->fingerprint().size(), 64u);
  EXPECT_EQ(store_->counts().reads, 0) << "nor for the fingerprint";
  auto seen = rows("number");
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(kRows));
  for (const auto& [id, bytes] : seen) {
    float number = 0;
    std::memcpy(&number, bytes.data(), sizeof(number));
    EXPECT_EQ(number, static_cast<float>(id));
  }
}

TEST_P(IndexedTest, OneReaderAtATimeIsInsideALibraryWithOneLock) {
  trouble_.global_lock = true;  // the store fails otherwise
  EXPECT_EQ(rows("number").size(), static_cast<std::size_t>(kRows));
}

TEST_P(IndexedTest, WhatIsDrawnIsTheSameForAnyWorkers) {
  add_strip();
  auto seen = rows("strip");
  loading_.workers = 0;
  EXPECT_EQ(rows("strip"), seen);
  for (const auto& [id, strip] : seen)
    EXPECT_EQ(strip, std::string(8, static_cast<char>('a' + id % 26)));
}

TEST_P(IndexedTest, AllSamplesMayBeKeptBesideTheBatches) {
  add_text(Lengths::padded);
  add_strip();
  const auto strips = rows("strip"), numbers = rows("number");
  std::atomic<bool> may_begin = false;
  TableDatasetOptions all{{.fields = options_.fields}};
  all.workers = GetParam();
  all.open = [&](StopFlag) -> std::unique_ptr<Source> {
    while (!may_begin) std::this_thread::yield();
    return std::make_unique<FakeStore>(
        std::vector<std::string>{"number", "text", "strip"}, rows_of(kRows),
        requests_of(options_.fields), trouble_);
  };
  auto set = std::make_shared<IndexedDataset>(options_, store());
  const std::string fingerprint = set->fingerprint();
  set->keep_beside(all);
  {
    Loader loader(set, loading_, *device_);
    for (int batch = 0; batch < 7; ++batch) {
      if (batch == 3) {  // those behind it are filled from memory
        may_begin = true;
        for (int i = 0; i < 3000 && set->kept() == nullptr; ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ASSERT_NE(set->kept(), nullptr) << "within half a minute";
      }
      const std::optional<Batch> next = loader.next();
      ASSERT_TRUE(next.has_value());
      next->wait();
      const auto* found =
          reinterpret_cast<const float*>(next->tensors()[0].view.data);
      for (std::size_t row = 0; row < next->ids().size(); ++row)
        EXPECT_EQ(found[row], static_cast<float>(next->ids()[row]));
    }
  }
  EXPECT_EQ(set->kept()->plan().tier, Tier::ram);
  EXPECT_EQ(rows("strip", set), strips);
  EXPECT_EQ(rows("number", set), numbers);
  EXPECT_EQ(set->fingerprint(), fingerprint);
  EXPECT_EQ(set->plan().tier, Tier::none) << "that of its first batches";
}

TEST_P(IndexedTest, WhereTheyCannotBeKeptTheyAreReadWhereTheyLie) {
  const auto numbers = rows("number");
  std::atomic<int> opened = 0;
  TableDatasetOptions all{{.fields = options_.fields}};
  all.open = [&](StopFlag) -> std::unique_ptr<Source> {
    ++opened;
    throw Error(ErrorKind::source, {.code = "fake", .what = "is gone"});
  };
  auto set = std::make_shared<IndexedDataset>(options_, store());
  set->keep_beside(all);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(opened, 0) << "the first rows come before";
  EXPECT_EQ(rows("number", set), numbers);
  while (opened == 0) std::this_thread::yield();
  EXPECT_EQ(set->kept(), nullptr);
}

TEST_P(IndexedTest, LengthsAreKnownBeforehand) {
  add_text(Lengths::padded);
  auto set = std::make_shared<IndexedDataset>(options_, store());
  EXPECT_THAT(set->facts().longest, testing::ElementsAre(6));
  Loader loader(set, loading_, *device_);
  while (std::optional<Batch> batch = loader.next()) {
    batch->wait();
    const TensorView& text = batch->tensors()[1].view;
    auto width = static_cast<std::size_t>(text.shape[1]);
    const auto* elements = reinterpret_cast<const std::int32_t*>(text.data);
    for (std::size_t row = 0; row < batch->ids().size(); ++row) {
      std::string expected = letters_of(batch->ids()[row]);
      expected.resize(width);
      for (std::size_t i = 0; i < width; ++i)
        ASSERT_EQ(elements[row * width + i], expected[i]);
    }
  }
}

TEST_P(IndexedTest, ASourceWithoutLengthsNeedsAScanThen) {
  add_text(Lengths::packed);
  trouble_.tells_lengths = false;
  try {
    IndexedDataset(options_, store());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "data.needs_scan");
    EXPECT_THAT(error.parts().why, HasSubstr("field 'text' differ in length"));
  }
}

TEST_P(IndexedTest, AFieldThatIsFittedNeedsAScanOrStatistics) {
  options_.fields = parse_fields(
      Json::parse(R"({"number": {"columns": ["number"], "standardize": true}})",
                  "test"),
      "fields");
  EXPECT_THAT(IndexedDataset::needs_scan(
                  options_, bound_source(options_.fields, store())),
              HasSubstr("field 'number' needs statistics"));
  options_.split.by = "text";
  EXPECT_THAT(IndexedDataset::needs_scan(
                  options_, bound_source(options_.fields, store())),
              HasSubstr("the split is by a column"));
}

TEST_P(IndexedTest, SidesAreByPosition) {
  options_.split = {.train = 0.6, .val = 0.3};
  auto set = std::make_shared<IndexedDataset>(options_, store());
  EXPECT_NEAR(static_cast<double>(set->rows_on(Side::train)), 120, 25);
  EXPECT_NEAR(static_cast<double>(set->rows_on(Side::val)), 60, 25);
  loading_.batches = (set->rows_on(Side::train) + 31) / 32;
  auto train = rows("number");
  loading_.side = Side::val;
  loading_.batches = (set->rows_on(Side::val) + 31) / 32;
  for (const auto& [id, bytes] : rows("number"))
    EXPECT_FALSE(train.contains(id));
}

TEST_P(IndexedTest, ABadSampleIsNamedByFieldAndIsMasked) {
  add_strip();
  trouble_.spoil = [](Block& block) {
    for (std::int64_t row = 0; row < block.rows; ++row)
      if (block.columns[0].float64(row) == 77)
        block.problems.push_back(
            {.row = row, .column = 0, .why = "found 'x', expected a number"});
  };
  loading_.on_bad = OnBad::mask;
  auto seen = rows("number");
  EXPECT_EQ(rejected_.size(), 1u);
  EXPECT_EQ(rejected_[77], "number: found 'x', expected a number");
  EXPECT_EQ(seen[77], std::string(4, '\0'));
  EXPECT_EQ(rows("strip")[77], std::string(8, '\0'));
  loading_.on_bad = OnBad::stop;
  try {
    rows("number");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "data.bad_sample");
    EXPECT_THAT(error.parts().where, HasSubstr("sample 77, number"));
  }
}

TEST_P(IndexedTest, AFailingReadIsHeardInItsBatchsTurn) {
  trouble_.fail_at_read = 3;
  EXPECT_THROW(rows("number"), Error);
}

INSTANTIATE_TEST_SUITE_P(Workers, IndexedTest, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
