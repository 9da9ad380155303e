#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"
#include "penstock/device/device.h"

namespace penstock {
namespace {

using testing::ElementsAre;

// Ten rows of four int32: row r holds 10r, 10r + 1, 10r + 2, 10r + 3.
class GatherTest : public testing::Test {
 protected:
  GatherTest() {
    for (int row = 0; row < 10; ++row)
      for (int i = 0; i < 4; ++i) table_.push_back(10 * row + i);
  }
  /// Where a field is in a row, and in what is given back, in bytes.
  struct Place {
    std::size_t in_row, bytes, in_out;
  };
  std::vector<int> gathered(std::vector<Place> places,
                            std::vector<std::int64_t> rows) {
    std::vector<int> out(16, 7);
    std::vector<GatherField> fields;
    for (const Place& place : places)
      fields.push_back(
          {reinterpret_cast<const std::byte*>(table_.data()) + place.in_row, 16,
           place.bytes,
           reinterpret_cast<std::byte*>(out.data()) + place.in_out});
    run_on_host(Gather{fields, rows});
    return out;
  }
  std::vector<int> table_;
};

TEST_F(GatherTest, PutsEachFieldOfARowInItsPlace) {
  // One int from the row's end, then two from its start.
  EXPECT_THAT(
      gathered({{12, 4, 0}, {0, 8, 12}}, {2, 9, 2}),
      ElementsAre(23, 93, 23, 20, 21, 90, 91, 20, 21, 7, 7, 7, 7, 7, 7, 7));
}

TEST_F(GatherTest, ARowOfMinusOneGivesZerosInEveryField) {
  EXPECT_THAT(gathered({{12, 4, 0}, {0, 8, 12}}, {1, -1, 0}),
              ElementsAre(13, 0, 3, 10, 11, 0, 0, 0, 1, 7, 7, 7, 7, 7, 7, 7));
}

TEST_F(GatherTest, TakesMoreRowsThanItLooksAhead) {
  std::vector<std::int64_t> rows{9, 8, 7, 6, 5, -1, 4, 3, 2, 1, 0, 0, 1, 2};
  EXPECT_THAT(
      gathered({{4, 4, 0}}, rows),
      ElementsAre(91, 81, 71, 61, 51, 0, 41, 31, 21, 11, 1, 1, 11, 21, 7, 7));
}

TEST_F(GatherTest, NoRowsTouchNothing) {
  EXPECT_THAT(gathered({{0, 16, 0}}, {}), testing::Each(7));
}

TEST_F(GatherTest, TakesArraysOfNumbersOfEverySize) {
  std::vector<std::uint8_t> bytes(100 * 8);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < 60; ++i) rows.push_back(i * 7 % 101 - 1);
  for (std::size_t size : {1u, 2u, 4u, 8u}) {
    std::vector<std::uint8_t> out(60 * size, 7), expected;
    for (std::int64_t row : rows)
      for (std::size_t i = 0; i < size; ++i)
        expected.push_back(
            row < 0 ? std::uint8_t{0}
                    : bytes[static_cast<std::size_t>(row) * size + i]);
    GatherField field{reinterpret_cast<const std::byte*>(bytes.data()), size,
                      size, reinterpret_cast<std::byte*>(out.data())};
    run_on_host(Gather{{&field, 1}, rows});
    EXPECT_EQ(out, expected) << size;
  }
}

// Every length up to that from which memcpy takes over, and some beyond.
TEST_F(GatherTest, CopiesNoByteMoreThanARowHas) {
  constexpr std::size_t kRows = 4;
  std::vector<std::int64_t> rows{3, -1, 0};
  for (std::size_t bytes = 0; bytes < 2200; bytes += bytes < 200 ? 1 : 61) {
    std::vector<std::uint8_t> table(kRows * bytes);
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<std::uint8_t>(i * 31 + i / 251);
    std::vector<std::uint8_t> out(3 * bytes + 64, 7), expected = out;
    for (std::size_t i = 0; i < bytes; ++i) {
      expected[i] = table[3 * bytes + i];
      expected[bytes + i] = 0;
      expected[2 * bytes + i] = table[i];
    }
    GatherField field{reinterpret_cast<const std::byte*>(table.data()), bytes,
                      bytes, reinterpret_cast<std::byte*>(out.data())};
    run_on_host(Gather{{&field, 1}, rows});
    ASSERT_EQ(out, expected) << bytes;
  }
}

TEST_F(GatherTest, AFieldThatLeavesItsRowIsAnInternalError) {
  std::byte table[32]{}, out[32]{};
  GatherField field{table, 8, 9, out};
  std::vector<std::int64_t> rows{0};
  EXPECT_THROW(run_on_host(Gather{{&field, 1}, rows}), Error);
}

TEST_F(GatherTest, ARowBelowMinusOneIsAnInternalError) {
  try {
    gathered({{0, 4, 0}}, {0, -2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
  }
}

}  // namespace
}  // namespace penstock
