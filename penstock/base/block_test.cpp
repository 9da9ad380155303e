#include "penstock/base/block.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Bytes, BorrowedBytesKeepTheirOwnerAlive) {
  auto owner = std::make_shared<std::vector<std::byte>>(8);
  std::weak_ptr<void> watch = owner;
  Bytes bytes = Bytes::borrow(*owner, owner);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_FALSE(bytes.owned());
  bytes.clear();
  EXPECT_TRUE(watch.expired());
}

TEST(Bytes, OwnedBytesGrowAndKeepTheirContent) {
  Bytes bytes;
  for (std::int64_t i = 0; i < 1000; ++i) bytes.append_value(i);
  EXPECT_EQ(bytes.as<std::int64_t>()[999], 999);
  EXPECT_EQ(bytes.size(), 8000u);
}

TEST(ColumnData, MarksNullsFromTheFirstOneOn) {
  ColumnData column{.type = ColumnType::float64};
  for (int i = 0; i < 20; ++i) {
    if (i % 7 == 3)
      column.append_null();
    else
      column.append_float64(i);
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(column.valid(i), i % 7 != 3) << i;
  EXPECT_EQ(column.float64(19), 19.0);
}

TEST(ColumnData, HoldsTextOfAnyLength) {
  ColumnData column{.type = ColumnType::text};
  column.append_text("ab");
  column.append_null();
  column.append_text("");
  column.append_text("c");
  EXPECT_EQ(column.text(0), "ab");
  EXPECT_FALSE(column.valid(1));
  EXPECT_TRUE(column.valid(2));
  EXPECT_EQ(column.text(3), "c");
}

TEST(ColumnData, NestsLists) {
  ColumnData list{.type = ColumnType::list};
  list.children.push_back({.type = ColumnType::float64});
  for (double value : {1.0, 2.0, 3.0}) list.children[0].append_float64(value);
  for (std::int64_t end : {0, 1, 3}) list.offsets.append_value(end);
  list.length = 2;
  EXPECT_EQ(list.offsets.as<std::int64_t>()[2], list.children[0].length);
}

TEST(Block, ClearKeepsTheColumnsAndForgetsTheRows) {
  Block block;
  block.columns.resize(1);
  block.columns[0].append_float64(1);
  block.rows = 1;
  block.problems.push_back({0, 0, "odd"});
  EXPECT_EQ(block.bytes(), 8u);
  block.clear();
  EXPECT_EQ(block.rows, 0);
  EXPECT_EQ(block.columns[0].length, 0);
  EXPECT_TRUE(block.problems.empty());
}

}  // namespace
}  // namespace penstock
