#include "penstock/sources/picked.h"

#include <gmock/gmock.h>

#include "penstock/sources/fake/fake_store.h"
#include "penstock/sources/test_reading.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

const std::vector<ColumnRequest> kValue = {{"value"}};

std::unique_ptr<Source> rows_of(std::vector<std::int64_t> positions) {
  return picked(
      counting_store(50, kValue, {.chunk_rows = 4}),
      std::make_shared<const std::vector<std::int64_t>>(std::move(positions)));
}

std::vector<double> values_of(const Block& block) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < block.rows; ++row)
    values.push_back(block.columns[0].as_float64(row));
  return values;
}

TEST(Picked, HasTheRowsInTheirOrderAndAnyOfThemTwice) {
  const auto source = rows_of({40, 3, 3, 49, 0});
  EXPECT_EQ(source->count().rows, 5);
  const std::vector<std::int64_t> some = {4, 0, 2, 0};
  Block block;
  source->open_reader()->read(some, block);
  EXPECT_THAT(values_of(block), ElementsAre(0, 40, 3, 40));
  for (int readers : {1, 2, 8}) {
    std::vector<double> scanned;
    std::vector<std::int64_t> numbers;
    for (const Partition& part : source->partitions(readers))
      source->open_reader()->scan(part, {}, [&](KeyList& keys, Block& rows) {
        for (double value : values_of(rows)) scanned.push_back(value);
        for (std::int64_t row = 0; row < keys.size(); ++row)
          numbers.push_back(keys.integer(row));
        return true;
      });
    EXPECT_THAT(scanned, ElementsAre(40, 3, 3, 49, 0));
    EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4));
  }
}

TEST(Picked, IsAnotherSourceThanThatOfOtherRows) {
  EXPECT_EQ(rows_of({1, 2})->identity(), rows_of({1, 2})->identity());
  EXPECT_NE(rows_of({1, 2})->identity(), rows_of({2, 1})->identity());
}

TEST(Picked, MayHaveNoRow) {
  const auto none = rows_of({});
  EXPECT_EQ(none->count().rows, 0);
  EXPECT_EQ(none->chunks(), nullptr);
}

TEST(Picked, IsSharedOutInPartsOfItsOwn) {
  std::vector<std::int64_t> many(1000, 7);
  const auto source = rows_of(std::move(many));
  ASSERT_NE(source->chunks(), nullptr);
  EXPECT_EQ(source->chunks()->ends.size(), 64u);
  EXPECT_EQ(source->chunks()->ends.back(), 1000);
}

}  // namespace
}  // namespace penstock
