#include "penstock/dataset/table/spill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/fake/memory_files.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Rows of a number and of a text with these keys.
ParsedBlock block_of(const std::vector<std::int64_t>& keys) {
  ParsedBlock block;
  block.fields.resize(2);
  block.fields[0].width = sizeof(double);
  for (std::int64_t key : keys) {
    block.keys.append_integer(key);
    block.sides.push_back(static_cast<std::uint8_t>(key % 2));
    block.hashes.push_back(static_cast<std::uint64_t>(key) * 7);
    block.fields[0].bytes.append_value(static_cast<double>(key));
    std::string text = "text of " + std::to_string(key);
    block.fields[1].bytes.append(text.data(), text.size());
    block.fields[1].ends.push_back(
        static_cast<std::uint32_t>(block.fields[1].bytes.size()));
  }
  return block;
}

std::vector<ParsedBlock> blocks_of(
    const std::vector<std::vector<std::int64_t>>& keys) {
  std::vector<ParsedBlock> blocks;
  for (const auto& some : keys) blocks.push_back(block_of(some));
  return blocks;
}

void expect_rows(const ParsedBlock& run, std::int64_t rows) {
  ASSERT_EQ(run.rows(), rows);
  ASSERT_EQ(run.fields.size(), 2u);
  for (std::int64_t key = 0; key < rows; ++key) {
    auto at = static_cast<std::size_t>(key);
    EXPECT_EQ(run.keys.integer(key), key);
    EXPECT_EQ(run.sides[at], key % 2);
    EXPECT_EQ(run.hashes[at], at * 7);
    EXPECT_EQ(*reinterpret_cast<const double*>(run.fields[0].row(key).data()),
              static_cast<double>(key));
    EXPECT_EQ(text_of(run.fields[1].row(key)),
              "text of " + std::to_string(key));
  }
}

TEST(Spill, PutsTheRowsOfBlocksInOrderOfKey) {
  MemoryFiles files;
  Spill spill(files, "/stores", "a table");
  expect_rows(spill.write(blocks_of({{8, 2, 5}, {0, 7}, {1, 3, 4, 6}})), 9);
  EXPECT_EQ(spill.bytes(), 9u * (sizeof(double) + 9));
}

TEST(Spill, LeavesNoFileInItsFolder) {
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) /
                                 ("spill-" + std::to_string(::getpid()));
  {
    Spill spill(real_files(), folder, "a table");
    std::vector<std::int64_t> keys;
    for (std::int64_t key = 0; key < 100'000; ++key)
      keys.push_back(99'999 - key);
    ParsedBlock run = spill.write(blocks_of({keys}));
    expect_rows(run, 100'000);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    EXPECT_FALSE(run.fields[0].bytes.owned());
  }
  std::filesystem::remove_all(folder);
}

TEST(Spill, TwoRowsWithOneKeyAreAnError) {
  MemoryFiles files;
  Spill spill(files, "/stores", "a table");
  try {
    spill.write(blocks_of({{1, 2}, {2}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_THAT(error.what(), HasSubstr("2"));
  }
}

TEST(Spill, NamesTheCallOfTheFileSystemThatFailed) {
  MemoryFiles counted;
  Spill(counted, "/stores", "a table").write(blocks_of({{1, 2}}));
  ASSERT_GT(counted.calls, 2);
  for (int call = 0; call < counted.calls; ++call) {
    MemoryFiles files;
    files.fails_at = call;
    Spill spill(files, "/stores", "a table");
    try {
      spill.write(blocks_of({{1, 2}}));
      ADD_FAILURE() << "call " << call;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_THAT(error.what(), HasSubstr("/stores"));
    }
    expect_rows(spill.write(blocks_of({{1}, {0}})), 2);
  }
}

TEST(Spill, ValuesLongerThanItsMemoryAreWrittenWhole) {
  ParsedBlock block = block_of({0, 1});
  const std::string text(3'000'000, 'x');
  block.fields[1].bytes.clear();
  block.fields[1].ends.clear();
  for (int row = 0; row < 2; ++row) {
    block.fields[1].bytes.append(text.data(), text.size());
    block.fields[1].ends.push_back(
        static_cast<std::uint32_t>(block.fields[1].bytes.size()));
  }
  std::vector<ParsedBlock> blocks;
  blocks.push_back(std::move(block));
  MemoryFiles files;
  ParsedBlock run = Spill(files, "/stores", "a table").write(blocks);
  EXPECT_EQ(text_of(run.fields[1].row(1)), text);
  EXPECT_EQ(run.fields[1].row(0).size(), bytes_of(text).size());
}

TEST(Spill, AFolderInMemoryIsNoPlace) {
  if (why_not_a_disk("/dev/shm") != "/dev/shm is in memory")
    GTEST_SKIP() << "/dev/shm is a disk here";
  MemoryFiles files;
  Spill spill(files, "/dev/shm/not/there", "a table");
  EXPECT_EQ(spill.why_not(), "/dev/shm/not/there is in memory");
  EXPECT_EQ(spill.text(), "no temporary files can be used: " + spill.why_not());
}

}  // namespace
}  // namespace penstock
