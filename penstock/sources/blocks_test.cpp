#include "penstock/sources/blocks.h"

#include <gmock/gmock.h>

namespace penstock {
namespace {

using ::testing::ElementsAre;

std::vector<float> floats_of(const NumberRow& row) {
  std::vector<float> numbers(static_cast<std::size_t>(row.count));
  EXPECT_EQ(row.dtype, Dtype::float32);
  EXPECT_EQ(row.bytes.size(), numbers.size() * sizeof(float));
  std::memcpy(numbers.data(), row.bytes.data(), row.bytes.size());
  return numbers;
}

TEST(NumberRow, IsARowOfAList) {
  Block block =
      block_of(std::vector<BlockColumn>{{ColumnType::list, Dtype::float32}});
  Column& lists = block.columns[0];
  for (float number : {1.0f, 2.0f, 3.0f})
    lists.children[0].append_number(number);
  lists.append_list();
  lists.append_null();
  lists.append_list();
  lists.children[0].append_number(4.0f);
  lists.append_list();
  EXPECT_THAT(floats_of(*numbers_of(lists, 0)), ElementsAre(1, 2, 3));
  EXPECT_THAT(floats_of(*numbers_of(lists, 2)), ElementsAre());
  EXPECT_THAT(floats_of(*numbers_of(lists, 3)), ElementsAre(4));
  lists.first = 2;  // as a slice of Arrow's
  lists.length = 2;
  EXPECT_THAT(floats_of(*numbers_of(lists, 1)), ElementsAre(4));
}

TEST(NumberRow, IsARowOfTensors) {
  Column tensors{.type = ColumnType::tensor(Dtype::float32), .item = {2, 2}};
  for (int i = 0; i < 12; ++i)
    tensors.values.append_value(static_cast<float>(i));
  tensors.first = 1;
  tensors.length = 2;
  EXPECT_THAT(floats_of(*numbers_of(tensors, 1)), ElementsAre(8, 9, 10, 11));
}

TEST(NumberRow, IsNoneOfAnythingElse) {
  Column texts{.type = ColumnType::text};
  texts.append_text("1,2");
  EXPECT_FALSE(numbers_of(texts, 0));
  Column lists{.type = ColumnType::list};
  lists.children.push_back(std::move(texts));
  lists.append_list();
  EXPECT_FALSE(numbers_of(lists, 0));
}

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
