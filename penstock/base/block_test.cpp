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

TEST(Column, MarksNullsFromTheFirstOneOn) {
  Column column{.type = ColumnType::float64};
  for (int i = 0; i < 20; ++i) {
    if (i % 7 == 3)
      column.append_null();
    else
      column.append_float64(i);
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(column.valid(i), i % 7 != 3) << i;
  EXPECT_EQ(column.float64(19), 19.0);
}

TEST(Column, HoldsTextOfAnyLength) {
  Column column{.type = ColumnType::text};
  column.append_text("ab");
  column.append_null();
  column.append_text("");
  column.append_text("c");
  EXPECT_EQ(column.text(0), "ab");
  EXPECT_FALSE(column.valid(1));
  EXPECT_TRUE(column.valid(2));
  EXPECT_EQ(column.text(3), "c");
}

TEST(Column, NestsLists) {
  Column list{.type = ColumnType::list};
  list.children.push_back({.type = ColumnType::float64});
  list.children[0].append_float64(1);
  list.append_list();
  list.append_null();
  list.children[0].append_float64(2);
  list.children[0].append_float64(3);
  list.append_list();
  EXPECT_EQ(list.length, 3);
  EXPECT_FALSE(list.valid(1));
  EXPECT_EQ(list.offset(0), 0);
  EXPECT_EQ(list.offset(1), list.offset(2));
  EXPECT_EQ(list.offset(3), 3);
}

TEST(Column, HoldsOneBitPerBoolean) {
  Column column{.type = ColumnType::boolean};
  for (int i = 0; i < 20; ++i) {
    if (i == 9)
      column.append_null();
    else
      column.append_boolean(i % 3 == 0);
  }
  EXPECT_EQ(column.values.size(), 3u);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(column.boolean(i), i % 3 == 0 && i != 9) << i;
  EXPECT_EQ(column.as_float64(0), 1.0);
}

TEST(Column, HoldsNumbersInTheirOwnWidth) {
  Column bytes{.type = ColumnType::number(Dtype::int8)};
  bytes.append_number(std::int8_t{-3});
  bytes.append_null();
  EXPECT_EQ(bytes.values.size(), 2u);
  EXPECT_EQ(bytes.as_float64(0), -3.0);
  EXPECT_EQ(bytes.as_int64(0), -3);
  Column reals{.type = ColumnType::number(Dtype::float32)};
  reals.append_number(0.5f);
  EXPECT_EQ(reals.values.size(), 4u);
  EXPECT_EQ(reals.as_float64(0), 0.5);
  Column large{.type = ColumnType::number(Dtype::uint64)};
  large.append_number(~std::uint64_t{0});
  EXPECT_EQ(large.as_float64(0), 0x1p64);
}

TEST(Column, HoldsTensorsOfOneShape) {
  Column column{.type = ColumnType::tensor(Dtype::float32), .item = {2, 3}};
  column.append_null();
  EXPECT_EQ(column.values.size(), 24u);
  EXPECT_FALSE(column.valid(0));
}

TEST(Column, IsALookIntoArrowsBuffersFromAnyRowOn) {
  // As in pa.array(["ab", None, "c", "def"]).slice(1), with its int32 offsets.
  auto arrow = std::make_shared<std::vector<std::int32_t>>(
      std::initializer_list<std::int32_t>{0, 2, 2, 3, 6});
  auto bits = std::make_shared<std::uint8_t>(std::uint8_t{0b1101});
  static constexpr std::string_view kText = "abcdef";
  Column column{.type = ColumnType::text, .first = 1, .length = 3};
  column.wide = false;
  column.validity =
      Bytes::borrow(std::as_bytes(std::span(bits.get(), 1)), bits);
  column.offsets = Bytes::borrow(std::as_bytes(std::span(*arrow)), arrow);
  column.values = Bytes::borrow(std::as_bytes(std::span(kText)), arrow);
  EXPECT_FALSE(column.valid(0));
  EXPECT_TRUE(column.valid(1));
  EXPECT_EQ(column.text(1), "c");
  EXPECT_EQ(column.text(2), "def");
}

TEST(Column, NumbersOf16BitsAreThoseTheyStandFor) {
  Column halves{.type = ColumnType::number(Dtype::float16)};
  for (int bits : {0x3C00, 0xC500, 0x0001, 0x7BFF})
    halves.append_number(static_cast<std::uint16_t>(bits));
  EXPECT_EQ(halves.as_float64(0), 1.0);
  EXPECT_EQ(halves.as_float64(1), -5.0);
  EXPECT_EQ(halves.as_float64(2), 0x1p-24);
  EXPECT_EQ(halves.as_float64(3), 65504.0);
  EXPECT_EQ(halves.as_int64(1), -5);
  halves.type = ColumnType::number(Dtype::bfloat16);
  EXPECT_EQ(halves.as_float64(1), -2048.0);
}

TEST(ColumnType, HasANameForMessages) {
  EXPECT_EQ(name_of(ColumnType::int64), "int64");
  EXPECT_EQ(name_of(ColumnType::number(Dtype::uint16)), "uint16");
  EXPECT_EQ(name_of(ColumnType::text), "text");
  EXPECT_EQ(name_of(ColumnType::json), "json");
  EXPECT_EQ(name_of(ColumnType::boolean), "boolean");
  EXPECT_EQ(name_of(ColumnType::uuid), "uuid");
  EXPECT_EQ(name_of(ColumnType::null), "null");
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
