#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "penstock/loader/seen_batches.h"

/// What every data set must do, whatever its samples are and wherever they are
/// kept. A new one joins with a case:
///
///     INSTANTIATE_TEST_SUITE_P(
///         MyRows, DatasetSuite,
///         testing::Values(DatasetSuiteCase{"mine", "cpu", make_mine}),
///         testing::PrintToStringParamName());
namespace penstock {

struct DatasetSuiteCase {
  std::string name;
  const char* device;
  /// The same samples, whenever it is called.
  std::function<std::shared_ptr<const Dataset>(Device& device)> make;

  friend void PrintTo(const DatasetSuiteCase& c, std::ostream* out) {
    *out << c.name;
  }
};

class DatasetSuite : public testing::TestWithParam<DatasetSuiteCase> {
 protected:
  static constexpr std::int64_t kBatches = 12;

  std::vector<SampleId> selected(Side side) const {
    std::vector<SampleId> ids(static_cast<std::size_t>(
        std::min<std::int64_t>(set_->rows_on(side), 5000)));
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<SampleId>(i);
    ids.push_back(-1);
    set_->select(side, ids);
    return ids;
  }
  LoaderOptions options(int workers, Side side = Side::train) const {
    return {.side = side,
            .seed = 5,
            .shuffle = side == Side::train,
            .tail = Tail::pad,
            .batch_size = 16,
            .workers = workers,
            .prefetch = workers == 0 ? 0 : 3,
            .batches = kBatches};
  }
  std::vector<SeenBatch> batches(const LoaderOptions& options) const {
    return seen_batches(set_, options, *device_);
  }

  std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
  std::shared_ptr<const Dataset> set_ = GetParam().make(*device_);
};

TEST_P(DatasetSuite, EachSideHasSamplesOfItsOwn) {
  std::set<SampleId> all;
  std::size_t named = 0;
  for (Side side : {Side::train, Side::val}) {
    const std::vector<SampleId> ids = selected(side);
    EXPECT_EQ(ids.back(), -1) << "padding stays";
    std::set<SampleId> own(ids.begin(), std::prev(ids.end()));
    for (SampleId id : own) {
      EXPECT_GE(id, 0);
      EXPECT_FALSE(all.contains(id)) << id << " is on both sides";
      set_->key_of(id);
    }
    if (!set_->facts().repeats) {
      EXPECT_EQ(own.size(), ids.size() - 1);
    }
    all.merge(own);
    named += ids.size() - 1;
  }
  EXPECT_GT(named, 0U);
  EXPECT_EQ(set_->rows_on(Side::unused), 0);
}

TEST_P(DatasetSuite, ThreadsAskForIdsAndLengthsAtOnce) {
  const std::vector<SampleId> ids = selected(Side::train);
  const std::size_t varying = set_->facts().longest.size();
  const auto lengths = [&](std::size_t of) {
    std::vector<SampleRange> ranges;
    for (SampleId id : ids)
      ranges.push_back({.sample = id, .end = id < 0 ? 0 : 1 << 20});
    std::vector<std::int32_t> found(ids.size());
    set_->lengths(of, ranges, found);
    return found;
  };
  // Those of what stands in bins are known of pieces, not of samples.
  const bool asks = varying > 0 && set_->outputs()[0].lengths != Lengths::bins;
  const std::vector<std::int32_t> known =
      asks ? lengths(0) : std::vector<std::int32_t>();
  if (asks) {
    EXPECT_EQ(known.back(), 0) << "padding has no elements";
    for (std::int32_t length : known)
      EXPECT_LE(length, set_->facts().longest[0]);
  }
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      EXPECT_EQ(selected(Side::train), ids);
      if (asks) {
        EXPECT_EQ(lengths(0), known);
      }
    });
}

TEST_P(DatasetSuite, IsTheSameWhenItIsMadeAgain) {
  const std::vector<SeenBatch> seen = batches(options(0));
  const std::string fingerprint = set_->fingerprint();
  const std::string statistics = set_->statistics().dump();
  EXPECT_EQ(set_->fingerprint(), fingerprint);
  set_ = GetParam().make(*device_);
  EXPECT_EQ(set_->fingerprint(), fingerprint);
  EXPECT_EQ(set_->statistics().dump(), statistics);
  EXPECT_EQ(batches(options(0)), seen);
}

TEST_P(DatasetSuite, BatchesAreTheSameWithAnyWorkers) {
  for (Side side : {Side::train, Side::val}) {
    if (set_->rows_on(side) == 0) continue;
    const std::vector<SeenBatch> seen = batches(options(0, side));
    ASSERT_EQ(std::ssize(seen), kBatches);
    for (int workers : {1, 8})
      EXPECT_EQ(batches(options(workers, side)), seen) << workers;
  }
}

TEST_P(DatasetSuite, LoadersReadItAtOnce) {
  const std::vector<SeenBatch> seen = batches(options(0));
  std::vector<std::jthread> loaders;
  for (int workers : {0, 2, 2})
    loaders.emplace_back(
        [&, workers] { EXPECT_EQ(batches(options(workers)), seen); });
}

TEST_P(DatasetSuite, BatchesGoOnAtAnyPosition) {
  const std::vector<SeenBatch> seen = batches(options(2));
  const std::int64_t epoch = steps_per_epoch(order_of(options(2), *set_));
  for (std::int64_t at : {1, 7}) {
    LoaderOptions later = options(2);
    later.start = {.epoch = at / epoch, .step = at % epoch};
    later.batches = 3;
    const std::vector<SeenBatch> found = batches(later);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], seen[static_cast<std::size_t>(at) + i]);
  }
}

}  // namespace penstock
