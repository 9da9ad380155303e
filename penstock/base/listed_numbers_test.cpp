#include "penstock/base/listed_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace penstock {
namespace {

using ::testing::ElementsAre;

std::vector<float> floats_of(const ListedNumbers& row) {
  std::vector<float> numbers(static_cast<std::size_t>(row.count));
  EXPECT_EQ(row.dtype, Dtype::float32);
  EXPECT_EQ(row.bytes.size(), numbers.size() * sizeof(float));
  if (!row.bytes.empty())
    std::memcpy(numbers.data(), row.bytes.data(), row.bytes.size());
  return numbers;
}

TEST(ListedNumbers, IsARowOfAList) {
  Column lists{.type = ColumnType::list};
  lists.children.push_back({.type = ColumnType::number(Dtype::float32)});
  for (float number : {1.0f, 2.0f, 3.0f})
    lists.children[0].append_number(number);
  lists.append_list();
  lists.append_null();
  lists.append_list();
  lists.children[0].append_number(4.0f);
  lists.append_list();
  EXPECT_THAT(floats_of(*listed_numbers(lists, 0)), ElementsAre(1, 2, 3));
  EXPECT_THAT(floats_of(*listed_numbers(lists, 2)), ElementsAre());
  EXPECT_THAT(floats_of(*listed_numbers(lists, 3)), ElementsAre(4));
  lists.first = 2;  // as a slice of Arrow's
  lists.length = 2;
  EXPECT_THAT(floats_of(*listed_numbers(lists, 1)), ElementsAre(4));
}

TEST(ListedNumbers, IsARowOfTensors) {
  Column tensors{.type = ColumnType::tensor(Dtype::float32), .item = {2, 2}};
  for (int i = 0; i < 12; ++i)
    tensors.values.append_value(static_cast<float>(i));
  tensors.first = 1;
  tensors.length = 2;
  EXPECT_THAT(floats_of(*listed_numbers(tensors, 1)),
              ElementsAre(8, 9, 10, 11));
}

TEST(ListedNumbers, IsNoneOfAnythingElse) {
  Column texts{.type = ColumnType::text};
  texts.append_text("1,2");
  EXPECT_FALSE(listed_numbers(texts, 0));
  Column lists{.type = ColumnType::list};
  lists.children.push_back(std::move(texts));
  lists.append_list();
  EXPECT_FALSE(listed_numbers(lists, 0));
}

}  // namespace
}  // namespace penstock
