#include "penstock/sources/blocks.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(BlockColumns, KeepTheNumbersOfTheirLists) {
  const std::vector<BlockColumn> columns = {{ColumnType::int64},
                                            {ColumnType::list, Dtype::int16}};
  const Block block = block_of(columns);
  EXPECT_TRUE(is_block_of(columns, block));
  EXPECT_EQ(block.columns[1].children[0].type,
            ColumnType::number(Dtype::int16));
  EXPECT_FALSE(
      is_block_of(std::vector<BlockColumn>{{ColumnType::int64},
                                           {ColumnType::list, Dtype::float32}},
                  block));
}

TEST(BlockIn, TakesTheMemoryOfABlockOfTheSameColumns) {
  const std::vector<BlockColumn> columns = {{ColumnType::int64},
                                            {ColumnType::binary}};
  Block block = block_of(columns);
  block.columns[0].append_int64(7);
  block.columns[1].append_text("seven");
  const std::byte* memory = block.columns[1].values.data();
  block = block_in(std::move(block), columns);
  EXPECT_EQ(block.columns[0].length, 0);
  block.columns[1].append_text("eight");
  EXPECT_EQ(block.columns[1].values.data(), memory);
  EXPECT_EQ(block.columns[1].text(0), "eight");
  const Block other = block_in(std::move(block),
                               std::vector<BlockColumn>{{ColumnType::float64}});
  EXPECT_EQ(other.columns.size(), 1);
  EXPECT_EQ(other.columns[0].type, ColumnType::float64);
}

TEST(BlockIn, LeavesWhatIsBorrowedAlone) {
  const std::vector<BlockColumn> columns = {{ColumnType::int64}};
  const std::int64_t seven = 7;
  Block block = block_of(columns);
  block.columns[0].length = 1;
  block.columns[0].values = Bytes::borrow(std::as_bytes(std::span(&seven, 1)),
                                          std::make_shared<int>());
  block = block_in(std::move(block), columns);
  block.columns[0].append_int64(8);
  EXPECT_EQ(block.columns[0].int64(0), 8);
  EXPECT_EQ(seven, 7);
}

}  // namespace
}  // namespace penstock
