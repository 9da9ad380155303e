#include "penstock/base/key.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(KeyList, ComparesIntegersAsNumbers) {
  Column column{.type = ColumnType::int64};
  column.append_int64(-5);
  column.append_int64(40);
  KeyList keys(ColumnType::int64);
  keys.append(column, 0);
  keys.append(column, 1);
  EXPECT_EQ(keys.compare(0, 1), -1);
  EXPECT_EQ(keys.json(0), Json(-5));
  EXPECT_EQ(keys.canonical(1).size(), 8u);
}

TEST(KeyList, ComparesTextByUtf8Bytes) {
  Column column{.type = ColumnType::text};
  for (const char* name : {"Z", "a", "ä", "~", ""}) column.append_text(name);
  KeyList keys(ColumnType::text);
  for (std::int64_t i = 0; i < 5; ++i) keys.append(column, i);
  EXPECT_EQ(keys.compare(0, 1), -1);
  EXPECT_EQ(keys.compare(2, 3), 1) << "bytes above 0x7f come last";
  EXPECT_EQ(keys.compare(4, 0), -1);
  EXPECT_EQ(keys.shown(2), "'ä'");
  EXPECT_EQ(keys.size(), 5);
}

TEST(KeyList, SpellsUuids) {
  Column column{.type = ColumnType::uuid};
  std::byte bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<std::byte>(i * 17);
  column.append_uuid(bytes);
  KeyList keys(ColumnType::uuid);
  keys.append(column, 0);
  KeyList copy(ColumnType::uuid);
  copy.append(keys, 0);
  EXPECT_EQ(copy.json(0), Json("00112233-4455-6677-8899-aabbccddeeff"));
  EXPECT_EQ(copy.size(), 1);
}

}  // namespace
}  // namespace penstock
