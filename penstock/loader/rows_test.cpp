#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// Rows that are made up when they are asked for, as a program of somebody
/// else's would supply them: row `id` holds id and three halves of it.
class MadeUpRows final : public Dataset {
 public:
  MadeUpRows() {
    facts_.rows = 100;
    facts_.on_side = {100, 0};
    facts_.outputs = {{"number", Dtype::int64, {}},
                      {"halves", Dtype::float32, {3}}};
  }

  void select(Side, std::span<SampleId>) const override { ++selects; }
  const std::string& fingerprint() const override { return fingerprint_; }
  std::unique_ptr<SlotFiller> open_filler(FillMeters& meters,
                                          const FillerOptions&) const override {
    if (refuses) throw std::runtime_error("no more readers");
    return std::make_unique<MakeUp>(*this, meters);
  }

  SampleId bad = -2;  ///< this row cannot be made
  bool refuses = false;
  mutable std::atomic<int> selects{0}, fills{0}, fillers{0};

 private:
  class MakeUp final : public SlotFiller {
   public:
    MakeUp(const MadeUpRows& rows, FillMeters& meters)
        : rows_(rows), meters_(meters), thread_(std::this_thread::get_id()) {
      ++rows_.fillers;
    }
    ~MakeUp() override { --rows_.fillers; }

    void fill(const FillItem& item, Stream&, Faults&) override {
      EXPECT_EQ(std::this_thread::get_id(), thread_);
      ++rows_.fills;
      BusyScope busy(meters_.read);
      for (std::size_t i = 0; i < item.ids.size(); ++i) {
        SampleId id = item.ids[i];
        if (id == rows_.bad) throw std::runtime_error("row of bad luck");
        std::int64_t number = std::max<SampleId>(id, 0);
        float half = static_cast<float>(number) / 2;
        float halves[] = {half, half, half};
        std::memcpy(item.to[0].row(i), &number, 8);
        std::memcpy(item.to[1].row(i), halves, 12);
      }
      meters_.read.add_items(std::ssize(item.ids), 0);
    }

   private:
    const MadeUpRows& rows_;
    FillMeters& meters_;
    const std::thread::id thread_;
  };

  std::string fingerprint_ = "made up";
};

class RowsTest : public testing::TestWithParam<int> {
 protected:
  LoaderOptions options(std::int64_t batches = -1) const {
    return {.shuffle = false,
            .tail = Tail::pad,
            .batch_size = 40,
            .workers = GetParam(),
            .batches = batches};
  }
  std::unique_ptr<Device> device_ =
      open_device({.kind = "sim", .virtual_time = true});
  std::shared_ptr<MadeUpRows> rows_ = std::make_shared<MadeUpRows>();
};

TEST_P(RowsTest, AnyKindOfRowsMakesBatches) {
  Loader loader(rows_, options(6), *device_);
  std::unique_ptr<Stream> stream = device_->make_stream();
  std::int64_t next = 0;
  while (std::optional<Batch> batch = loader.next(*stream)) {
    std::vector<std::int64_t> numbers(40);
    std::vector<float> halves(120);
    stream->copy(reinterpret_cast<std::byte*>(numbers.data()),
                 batch->tensors()[0].view.data, 320);
    stream->copy(reinterpret_cast<std::byte*>(halves.data()),
                 batch->tensors()[1].view.data, 480);
    stream->synchronize();
    for (std::size_t i = 0; i < 40; ++i) {
      bool padding = batch->ids()[i] < 0;
      EXPECT_EQ(numbers[i], padding ? 0 : next);
      EXPECT_EQ(halves[3 * i + 2], static_cast<float>(numbers[i]) / 2);
      if (!padding) next = (next + 1) % 100;
    }
  }
  EXPECT_EQ(next, 0) << "two epochs";
}

TEST_P(RowsTest, AreAskedOncePerBatchForTheirIds) {
  {
    Loader loader(rows_, options(6), *device_);
    while (loader.next()) {
    }
  }
  EXPECT_EQ(rows_->selects, 6);
  EXPECT_LE(rows_->fills, 6 * std::max(1, GetParam()));
  EXPECT_EQ(rows_->fillers, 0) << "they go with the loader";
}

TEST_P(RowsTest, WhatAFillerThrowsComesInItsTurn) {
  rows_->bad = 85;
  Loader loader(rows_, options(), *device_);
  EXPECT_EQ(loader.next()->at().step, 0);
  EXPECT_EQ(loader.next()->at().step, 1);
  for (int again = 0; again < 2; ++again) {
    try {
      loader.next();
      FAIL() << "the error stays";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("row of bad luck"));
    }
  }
}

TEST_P(RowsTest, AFillerThatCannotBeOpenedIsHeard) {
  rows_->refuses = true;
  Loader loader(rows_, options(), *device_);
  try {
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no more readers"));
  }
}

TEST_P(RowsTest, TimeThatIsSpentReadingIsAStage) {
  Loader loader(rows_, options(3), *device_);
  while (loader.next()) {
  }
  EXPECT_EQ(loader.stages()[1].name, "read");
  EXPECT_EQ(loader.stages()[1].items, 120);
}

INSTANTIATE_TEST_SUITE_P(Workers, RowsTest, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
