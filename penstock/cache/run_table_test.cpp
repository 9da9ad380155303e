#include "penstock/cache/run_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/fake/memory_files.h"

namespace penstock {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> run) {
  return {reinterpret_cast<const char*>(run.data()), run.size()};
}

TEST(RunTable, GivesBackRunsOfAnyLength) {
  RunTable table(1, true);
  std::vector<std::string> runs;
  for (int row = 0; row < 1000; ++row)
    runs.push_back(std::string(static_cast<std::size_t>(row * 37 % 5000),
                               static_cast<char>('a' + row % 26)));
  for (const std::string& run : runs) table.append(bytes_of(run));
  ASSERT_EQ(table.rows(), 1000);
  for (std::int64_t row = 999; row >= 0; --row)
    ASSERT_EQ(text_of(table.row(row)), runs[static_cast<std::size_t>(row)]);
  EXPECT_EQ(table.longest(), 4995);
}

TEST(RunTable, CountsInElements) {
  RunTable table(4, true);
  table.append(bytes_of("aaaabbbb"));
  table.append({});
  table.append(bytes_of("cccc"));
  EXPECT_EQ(table.length(0), 2);
  EXPECT_EQ(table.length(1), 0);
  EXPECT_EQ(table.row(1).size(), 0u);
  EXPECT_EQ(text_of(table.row(2)), "cccc");
  EXPECT_EQ(table.bytes(), 12u);
}

TEST(RunTable, ReadsRunsOfAStoreInPlace) {
  for (std::int32_t rows : {0, 1, 31, 32, 33, 100}) {
    MemoryFiles files;
    StoreWriter writer(files, "s.store");
    std::vector<std::int32_t> lengths;
    std::string all;
    for (std::int32_t row = 0; row < rows; ++row) {
      lengths.push_back(row * 7 % 13);
      all += std::string(static_cast<std::size_t>(2 * lengths.back()),
                         static_cast<char>('a' + row % 26));
    }
    writer.begin("lengths");
    writer.append(std::as_bytes(std::span(lengths)));
    writer.begin("runs");
    writer.append(bytes_of(all));
    writer.seal({});
    const RunTable table(2, std::make_shared<const Store>(files, "s.store"),
                         "lengths", "runs");
    ASSERT_EQ(table.rows(), rows);
    EXPECT_EQ(table.bytes(), all.size());
    std::string found;
    std::int32_t longest = 0;
    for (std::int32_t row = 0; row < rows; ++row) {
      found += text_of(table.row(row));
      longest = std::max(longest, table.length(row));
    }
    EXPECT_EQ(found, all);
    EXPECT_EQ(table.longest(), longest);
  }
}

TEST(RunTable, KeepsTheLengthsAloneWhereAskedTo) {
  RunTable table(1, false);
  for (int row = 0; row < 100; ++row) table.append(bytes_of("abc"));
  EXPECT_EQ(table.length(99), 3);
  EXPECT_EQ(table.bytes(), 300u) << "what the runs would take";
}

}  // namespace
}  // namespace penstock
