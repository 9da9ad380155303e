#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/fake/memory_files.h"
#include "penstock/cache/cache.h"

/// What every tier must do that keeps rows, and every division of rows over
/// tiers, on each device. A new one joins with a case:
///
///     INSTANTIATE_TEST_SUITE_P(
///         Tiers, TierSuite,
///         testing::Values(TierSuiteCase{"sim_device", {.kind = "sim"},
///                                       {{Tier::device, 9000}}}),
///         testing::PrintToStringParamName());
namespace penstock {

struct TierSuiteCase {
  std::string name;
  DeviceSpec device;
  std::vector<TierRows> places;

  friend void PrintTo(const TierSuiteCase& c, std::ostream* out) {
    *out << c.name;
  }
};

class TierSuite : public testing::TestWithParam<TierSuiteCase> {
 protected:
  static constexpr std::size_t kRowBytes = 1000;

  TierSuite() {
    for (const TierRows& place : GetParam().places) {
      rows_ += place.rows;
      if (place.tier != Tier::disk) appended_ += place.rows;
    }
  }

  static std::string row(std::int64_t id) {
    std::string bytes(kRowBytes, static_cast<char>(id * 7 % 251));
    std::memcpy(bytes.data(), &id, sizeof(id));
    return bytes;
  }
  /// A store with all rows, those of other tiers too.
  std::shared_ptr<const Store> store() {
    if (appended_ == rows_) return nullptr;
    StoreWriter writer(files_, "rows.store");
    writer.begin("rows");
    for (std::int64_t id = 0; id < rows_; ++id) {
      const std::string bytes = row(id);
      writer.append(std::as_bytes(std::span(bytes)));
    }
    writer.seal(Json(Json::Object{}));
    return std::make_shared<Store>(files_, "rows.store");
  }
  std::unique_ptr<Table> make() {
    return std::make_unique<Table>(GetParam().places, kRowBytes, *device_,
                                   store(), "rows");
  }
  static void append(Table& table, std::int64_t first, std::int64_t end) {
    while (first < end) {
      const std::int64_t count = std::min(table.most_rows(), end - first);
      std::byte* to = table.append(count);
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(to + static_cast<std::size_t>(i) * kRowBytes,
                    row(first + i).data(), kRowBytes);
      first += count;
    }
  }
  std::unique_ptr<Table> filled() {
    std::unique_ptr<Table> table = make();
    append(*table, 0, appended_);
    table->seal();
    return table;
  }

  /// Every `step`-th row, backwards, each piece by one gather.
  void expect_rows(const Table& table, std::int64_t step) {
    std::unique_ptr<Stream> stream = device_->make_stream();
    std::int64_t seen = 0;
    for (const Table::Piece& piece : table.pieces()) {
      std::vector<std::int64_t> rows;
      for (std::int64_t at = piece.rows - 1; at >= 0; at -= step)
        rows.push_back(at);
      std::vector<std::int64_t> ids;
      for (std::int64_t at : rows) ids.push_back(piece.first + at);
      table.check(ids);
      const std::string found = gathered(piece, rows, *stream);
      for (std::size_t i = 0; i < ids.size(); ++i)
        ASSERT_EQ(found.substr(i * kRowBytes, kRowBytes), row(ids[i]))
            << ids[i];
      seen += piece.rows;
    }
    EXPECT_EQ(seen, rows_);
  }
  std::string gathered(const Table::Piece& piece,
                       const std::vector<std::int64_t>& rows, Stream& stream) {
    std::string out(rows.size() * kRowBytes, '?');
    auto* to = reinterpret_cast<std::byte*>(out.data());
    GatherField field{piece.data, kRowBytes, kRowBytes, to};
    const Gather gather{.fields = {&field, 1}, .rows = rows};
    if (!gathered_on_device(piece.tier)) {
      run_on_host(gather);
      return out;
    }
    Buffer target = device_->allocate(out.size());
    field.out = target.data();
    stream.run(gather);
    stream.copy(to, target.data(), out.size());
    stream.synchronize();
    return out;
  }

  std::int64_t rows_ = 0, appended_ = 0;
  MemoryFiles files_;
  std::unique_ptr<Device> device_ = open_device(GetParam().device);
};

TEST_P(TierSuite, GivesBackEveryRow) {
  const std::unique_ptr<Table> table = filled();
  expect_rows(*table, 1);
  EXPECT_EQ(table->places(), GetParam().places);
  EXPECT_EQ(table->bytes(), static_cast<std::size_t>(rows_) * kRowBytes);
}

TEST_P(TierSuite, ThreadsGatherAtOnce) {
  const std::unique_ptr<Table> table = filled();
  std::vector<std::jthread> threads;
  for (std::int64_t step : {3, 5, 7, 11})
    threads.emplace_back([&, step] { expect_rows(*table, step); });
}

TEST_P(TierSuite, TakesAsManyRowsAsWerePlanned) {
  const std::unique_ptr<Table> table = make();
  append(*table, 0, appended_);
  EXPECT_EQ(table->most_rows(), 0);
  EXPECT_THROW(table->append(1), Error);
  table->seal();
  expect_rows(*table, 100);
}

TEST_P(TierSuite, GivenUpHalfFilledItHoldsNoMemory) {
  const std::size_t free = device_->memory().free;
  {
    const std::unique_ptr<Table> table = make();
    append(*table, 0, appended_ / 2);
  }
  if (device_->memory_kind() == MemoryKind::cpu) return;
  EXPECT_EQ(device_->memory().free, free);
}

TEST_P(TierSuite, RowsLeaveTheDeviceAndComeBack) {
  std::unique_ptr<Table> table = filled();
  const TierRows first = table->places().front();
  if (first.tier != Tier::device || device_->memory_kind() == MemoryKind::cpu)
    GTEST_SKIP() << "the device keeps no rows";
  const std::size_t free = device_->memory().free;
  auto moved = std::make_unique<Table>(
      table->off_device(Tier::ram, first.rows, *device_));
  table.reset();
  EXPECT_GE(device_->memory().free,
            free + static_cast<std::size_t>(first.rows) * kRowBytes);
  expect_rows(*moved, 1);
  const Table back = moved->on_device(first.rows, *device_);
  moved.reset();
  EXPECT_EQ(back.places().front(), first);
  expect_rows(back, 1);
}

}  // namespace penstock
