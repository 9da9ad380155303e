#include "penstock/cache/run_table.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(RunTable, KeepsTheLengthsAloneWhereAskedTo) {
  RunTable table(1, false);
  for (int row = 0; row < 100; ++row) table.append(bytes_of("abc"));
  EXPECT_EQ(table.length(99), 3);
  EXPECT_EQ(table.bytes(), 300u) << "what the runs would take";
}

}  // namespace
}  // namespace penstock
