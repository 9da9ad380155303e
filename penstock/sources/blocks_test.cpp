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

}  // namespace
}  // namespace penstock
