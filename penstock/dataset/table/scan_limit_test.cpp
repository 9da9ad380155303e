// A scan plans for what its readers take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "penstock/base/fake/test_folder.h"
#include "penstock/base/held_memory.h"
#include "penstock/dataset/indexed/sample_reader.h"
#include "penstock/dataset/table/scan.h"
#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kTooMuch = std::size_t{1} << 50;

std::unique_ptr<FakeStore> store(ReaderMemory reader) {
  return counting_store(100, {{.column = "value"}}, {.reader = reader});
}

ScanLimit scan_limit(const Source& source, const TableDatasetOptions& options) {
  return decide_scan(asked_scan(options, source), read_host_limits()).limit;
}

TEST(ScanLimit, TakesAsManyReadersAsHaveRoom) {
  TableDatasetOptions options;
  options.workers = 8;
  EXPECT_EQ(scan_limit(*store({}), options).readers, 8);
  EXPECT_EQ(scan_limit(*store({.scanning = 1000}), options).readers, 8);
  EXPECT_EQ(scan_limit(*store({.scanning = kTooMuch}), options).readers, 1)
      << "one there must be";
}

TEST(ScanLimit, LeavesOutWhatReadersTake) {
  TableDatasetOptions options;
  options.workers = 2;
  constexpr std::size_t kEach = std::size_t{1} << 20;
  const ScanLimit limit = scan_limit(*store({.scanning = kEach}), options);
  EXPECT_EQ(limit.reader_bytes, 2 * kEach);
  EXPECT_THAT(limit.text(), HasSubstr("of which 2 readers take 2.0 MiB"));
  EXPECT_EQ(scan_limit(*store({}), options).reader_bytes, 0u);
}

TEST(ScanLimit, IsTheOneThatWasChosen) {
  TableDatasetOptions options;
  options.workers = 4;
  options.scan_bytes = 12345;
  const ScanLimit limit = scan_limit(*store({.scanning = kTooMuch}), options);
  EXPECT_EQ(limit.bytes, 12345u);
  EXPECT_EQ(limit.readers, 4);
}

TEST(ScanLimit, OneReaderWorksWhereTheLibraryHasOneLock) {
  const auto locked =
      counting_store(100, {{.column = "value"}}, {.global_lock = true});
  TableDatasetOptions options;
  options.workers = 8;
  EXPECT_EQ(scan_limit(*locked, options).readers, 1);
}

TEST(ScanPlan, RowsGoToFilesWhereAnInterruptedScanGoesOn) {
  const AskedScan all{.by_position = true,
                      .resumable = true,
                      .store_usable = true,
                      .runs_to_disk = true};
  const auto plan = [&](const std::function<void(AskedScan&)>& change) {
    AskedScan asked = all;
    change(asked);
    const ScanPlan plan = decide_scan(asked, {});
    return std::pair(plan.in_parts, plan.into_store);
  };
  EXPECT_EQ(plan([](AskedScan&) {}), std::pair(true, true));
  EXPECT_EQ(plan([](AskedScan& a) { a.runs_to_disk = false; }),
            std::pair(true, false));
  EXPECT_EQ(plan([](AskedScan& a) { a.by_key = true; }),
            std::pair(true, false));
  for (const auto& change : std::vector<std::function<void(AskedScan&)>>{
           [](AskedScan& a) { a.by_position = false; },
           [](AskedScan& a) { a.resumable = false; },
           [](AskedScan& a) { a.store_usable = false; },
           [](AskedScan& a) { a.keeps_values = false; }})
    EXPECT_EQ(plan(change), std::pair(false, false));
}

TEST(MostReaders, AreAsManyAsHaveRoomForTheirChunks) {
  EXPECT_GT(most_readers(*store({})), 1000);
  EXPECT_EQ(most_readers(*store({.by_position = kTooMuch})), 1);
}

TEST(ReaderMemory, IsChargedToRecords) {
  auto held = [] {
    std::size_t bytes = 0;
    for (const HeldMemory& one : held_memory())
      if (one.owner == HeldFor::records && one.place == HeldIn::host)
        bytes = one.bytes;
    return bytes;
  };
  const std::size_t before = held();
  const auto source = store({.scanning = 1000, .by_position = 3000});
  auto reader = open_checked_reader(*source);
  EXPECT_EQ(held(), before);
  Block block;
  reader->read(std::vector<std::int64_t>{1}, block);
  EXPECT_EQ(held(), before + 3000);
  reader->scan(source->partitions(1)[0], {},
               [](KeyList&, Block&) { return true; });
  EXPECT_EQ(held(), before + 1000);
  reader.reset();
  EXPECT_EQ(held(), before);
}

TEST(Scan, RowsByPositionThatGoToFilesNeedNoSortingThere) {
  constexpr std::int64_t kRows = 100'000;
  std::string fields;
  for (char name = 'a'; name <= 'j'; ++name)
    fields += std::string(fields.empty() ? "{" : ", ") + '"' + name +
              R"(": {"columns": ["value"]})";
  TableDatasetOptions options{
      {.fields = parse_fields(Json::parse(fields + "}", "test"), "fields")}};
  options.workers = 2;
  const auto source =
      counting_store(kRows, requests_of(options.fields), {.chunk_rows = 1000});
  const TestFolder folder;
  Spill spill(real_files(), folder.path("spill"), "a fake store");
  const Scan scan = scan_table(
      *source,
      {.fields = bind_fields(options.fields, *source), .columns = {"value"}},
      options, {.bytes = 8'000'000, .why = "a test", .readers = 2}, spill);
  EXPECT_GT(scan.memory.spilled, 0u);
  EXPECT_LE(scan.memory.bytes, 9'000'000u);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  std::int64_t rows = 0;
  for (const ParsedBlock& block : scan.blocks) {
    ranges.emplace_back(block.keys.integer(0),
                        block.keys.integer(block.rows() - 1));
    rows += block.rows();
  }
  EXPECT_EQ(rows, kRows);
  std::ranges::sort(ranges);
  for (std::size_t at = 1; at < ranges.size(); ++at)
    EXPECT_GT(ranges[at].first, ranges[at - 1].second);
}

}  // namespace
}  // namespace penstock
