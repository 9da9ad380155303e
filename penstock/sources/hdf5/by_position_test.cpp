// Rows by position come out the same whether decoded chunks are kept for the
// next epoch or used up row by row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "penstock/base/random.h"
#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

constexpr std::int64_t kRows = 100;
constexpr hsize_t kEach = 37;

std::vector<Written> layouts() {
  std::vector<Written> all;
  for (bool shuffle : {false, true})
    for (unsigned deflate : {0U, 4U})
      for (bool checksum : {false, true})
        all.push_back({.chunk = 8,
                       .deflate = deflate,
                       .shuffle = shuffle,
                       .checksum = checksum});
  return all;
}

/// Rows in no order, some of them twice.
std::vector<std::int64_t> some_rows() {
  std::vector<std::int64_t> rows;
  Random random(1, 0, 0, 0);
  for (int at = 0; at < 3 * kRows; ++at)
    rows.push_back(static_cast<std::int64_t>(random.next() % kRows));
  return rows;
}

class ByPosition : public testing::TestWithParam<double> {
 protected:
  std::unique_ptr<Source> open(std::vector<ColumnRequest> columns) {
    Json section = files::section_of("hdf5", path_);
    section["decoded_gib"] = GetParam();
    return files::open_files(section, columns);
  }

  template <class Value>
  void expect_rows(Written how) {
    std::vector<Value> values(kRows * kEach);
    std::iota(values.begin(), values.end(), Value{-1000});
    std::vector<std::int64_t> labels(kRows);
    std::iota(labels.begin(), labels.end(), 500);
    {
      TestFile file(path_);
      file.write("x", values, how, kEach);
      file.write("y", labels, how);
    }
    auto source = open({files::wanted("/x"), files::wanted("/y")});
    auto reader = open_checked_reader(*source);
    Block block;
    for (int epoch = 0; epoch < 2; ++epoch) {
      const std::vector<std::int64_t> rows = some_rows();
      reader->read(rows, block);
      ASSERT_TRUE(block.problems.empty());
      for (std::int64_t at = 0; at < std::ssize(rows); ++at) {
        const std::int64_t row = rows[static_cast<std::size_t>(at)];
        ASSERT_EQ(block.columns[1].as_int64(at), 500 + row);
        const auto found =
            files::numbers_of(*listed_numbers(block.columns[0], at));
        ASSERT_EQ(found.size(), kEach);
        for (std::size_t n = 0; n < kEach; ++n)
          ASSERT_EQ(found[n],
                    static_cast<double>(
                        values[static_cast<std::size_t>(row) * kEach + n]));
      }
    }
  }

  files::TestFolder folder_;
  const std::string path_ = folder_.path("a.h5");
};

INSTANTIATE_TEST_SUITE_P(Memory, ByPosition, testing::Values(0.0, 1.0),
                         [](const auto& of) {
                           return of.param == 0 ? "UsedUp" : "Kept";
                         });

TEST_P(ByPosition, AreTheRowsThatWereWritten) {
  for (const Written& how : layouts()) {
    expect_rows<float>(how);
    expect_rows<double>(how);
    expect_rows<std::int64_t>(how);
  }
}

TEST_P(ByPosition, AScanBetweenReadsGivesThemToo) {
  std::vector<float> values(kRows * kEach);
  std::iota(values.begin(), values.end(), 0.0F);
  TestFile(path_).write("x", values,
                        {.chunk = 8, .deflate = 1, .shuffle = true}, kEach);
  auto source = open({files::wanted("/x")});
  auto reader = open_checked_reader(*source);
  Block block;
  reader->read(std::vector<std::int64_t>{3, 50, 4}, block);
  std::int64_t row = 0;
  for (const Partition& part : source->partitions(2))
    reader->scan(part, {}, [&](KeyList&, Block& rows) {
      for (std::int64_t at = 0; at < rows.rows; ++at, ++row)
        EXPECT_EQ(files::numbers_of(*listed_numbers(rows.columns[0], at))[1],
                  static_cast<double>(row * std::int64_t{kEach} + 1));
      return true;
    });
  EXPECT_EQ(row, kRows);
}

TEST_P(ByPosition, RowsOfADamagedChunkAreNullAndOthersAreNot) {
  std::vector<float> values(kRows * kEach, 1.5F);
  TestFile(path_).write(
      "x", values,
      {.chunk = 8, .deflate = 1, .shuffle = true, .checksum = true}, kEach);
  std::string bytes = files::TestFolder::read(path_);
  // The chunks are alike, and lie one after the other at the end.
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  folder_.write("a.h5", bytes);
  auto source = open({files::wanted("/x")});
  auto reader = open_checked_reader(*source);
  Block block;
  reader->read(std::vector<std::int64_t>{0, 99, 1, 98}, block);
  std::int64_t nulls = 0;
  for (std::int64_t row = 0; row < block.rows; ++row)
    nulls += block.columns[0].valid(row) ? 0 : 1;
  EXPECT_EQ(nulls, std::ssize(block.problems));
  EXPECT_TRUE(block.columns[0].valid(0));
  EXPECT_EQ(files::numbers_of(*listed_numbers(block.columns[0], 0))[0], 1.5);
}

}  // namespace
}  // namespace penstock::hdf5
