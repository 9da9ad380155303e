#include "penstock/dataset/table/store_of_scan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/fake/memory_files.h"

namespace penstock {
namespace {

constexpr std::int64_t kPartitions = 40;

std::string text_of(std::int64_t row) {
  return std::string(static_cast<std::size_t>(row * 37 % 90),
                     static_cast<char>('a' + row % 26));
}

/// Ten texts, in two blocks.
ScannedPart part_of(std::int64_t partition) {
  ScannedPart part;
  for (std::int64_t row = 10 * partition; row < 10 * (partition + 1); ++row) {
    if (row % 5 == 0) part.blocks.emplace_back().fields.resize(1);
    ParsedBlock& block = part.blocks.back();
    block.keys.append_integer(row);
    block.hashes.push_back(0);
    const std::string text = text_of(row);
    block.fields[0].bytes.append(text.data(), text.size());
    block.fields[0].end_row();
  }
  return part;
}

class StoreOfScanTest : public testing::TestWithParam<int> {
 protected:
  StoreOfScanTest() {
    fields_ = parse_fields(
        Json::parse(R"({"t": {"text": {"column": "t"}}})", "test"), "fields");
    store_ = std::make_unique<StoreOfScan>(
        files_, "s.store",
        RowEncoder(bind_fields(fields_, {{.name = "t"}}, {ColumnType::text}),
                   fields_, layout_of(fields_), {Json()}),
        1);
  }
  MemoryFiles files_;
  std::vector<Field> fields_;
  std::unique_ptr<StoreOfScan> store_;
};

TEST_P(StoreOfScanTest, HasTheRunsInOrderWhoeverScansThem) {
  std::atomic<std::int64_t> next{0};
  std::atomic<int> written{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < GetParam(); ++thread)
      threads.emplace_back([&] {
        // Each pair the later one first.
        for (std::int64_t at = next++; at < kPartitions; at = next++)
          store_->add(at ^ 1, part_of(at ^ 1), [&](const ScannedPart& part) {
            EXPECT_EQ(part.blocks.size(), 2u);
            ++written;
          });
      });
  }
  EXPECT_EQ(written, kPartitions);
  store_->writer().seal({});
  const Store store(files_, "s.store");
  std::string expected;
  ASSERT_EQ(store_->lengths()->rows(), 10 * kPartitions);
  for (std::int64_t row = 0; row < 10 * kPartitions; ++row) {
    expected += text_of(row);
    EXPECT_EQ(store_->lengths()->length(row), std::ssize(text_of(row)));
  }
  const std::span<const std::byte> runs = store.checked("runs/0");
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(runs.data()), runs.size()),
      expected);
  EXPECT_EQ(store.array("rows").size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Threads, StoreOfScanTest, testing::Values(1, 2, 8));

TEST_P(StoreOfScanTest, LeavesNothingWhereItIsNotSealed) {
  store_->add(0, part_of(0), [](const ScannedPart&) {});
  store_.reset();
  EXPECT_TRUE(files_.files.empty());
}

}  // namespace
}  // namespace penstock
