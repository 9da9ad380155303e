#include "penstock/dataset/table/key_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/base/printable.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using Texts = std::vector<std::string>;

void append(KeyList& keys, const std::string& key) {
  Column column{.type = keys.type()};
  if (keys.type() == ColumnType::uuid)
    column.values.append(key.data(), 16);
  else
    column.append_text(key);
  keys.append(column, 0);
}

void append(KeyList& keys, std::int64_t key) {
  Column column{.type = ColumnType::int64};
  column.append_int64(key);
  keys.append(column, 0);
}

ParsedBlock empty_block(ColumnType type) {
  ParsedBlock block;
  block.keys = KeyList(type);
  return block;
}

/// Blocks of these keys; every third block is empty.
template <class Key>
std::vector<ParsedBlock> blocks_of(ColumnType type,
                                   const std::vector<Key>& keys,
                                   std::size_t block_rows) {
  std::vector<ParsedBlock> blocks;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % block_rows == 0) {
      if (blocks.size() % 3 == 1) blocks.push_back(empty_block(type));
      blocks.push_back(empty_block(type));
    }
    append(blocks.back().keys, keys[i]);
    blocks.back().hashes.push_back(0);
  }
  return blocks;
}

/// The keys in the order that was found.
Texts texts_in_order(const std::vector<ParsedBlock>& blocks, int workers) {
  Texts texts;
  for (RowRef row : rows_by_key(blocks, "table", workers))
    texts.emplace_back(blocks[row.block].keys.bytes(row.row));
  return texts;
}

std::string refusal(const std::vector<ParsedBlock>& blocks, int workers) {
  try {
    rows_by_key(blocks, "data.sqlite", workers);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "source.duplicate_key");
    EXPECT_EQ(error.parts().where, "data.sqlite");
    return error.parts().what;
  }
  return "no error";
}

/// Many keys that have a lot in common: long beginnings, zeros, ends where
/// others go on, bytes above 127.
Texts alike_texts(std::size_t count) {
  Random random(7, 0, 0, 0);
  const char* beginnings[] = {"", "a", "recording/2024/", "recording/2024/11/x",
                              "\xc3\xa9"};
  Texts texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text = beginnings[random.below(std::size(beginnings))];
    for (std::uint64_t n = random.below(20); n > 0; --n)
      text += "\0\1ab\xff"[random.below(5)];
    texts.push_back(text);
  }
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  for (std::size_t i = texts.size(); i > 1; --i)
    std::swap(texts[i - 1], texts[random.below(i)]);
  return texts;
}

class KeyOrder : public testing::TestWithParam<int> {};

TEST_P(KeyOrder, SortsIntegersAsNumbers) {
  std::vector<std::int64_t> keys = {0, std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max()};
  for (std::uint64_t i = 1; i < 30'000; ++i)
    keys.push_back(static_cast<std::int64_t>(mix64(i)));
  std::vector<ParsedBlock> blocks = blocks_of(ColumnType::int64, keys, 777);
  std::vector<std::int64_t> found;
  for (RowRef row : rows_by_key(blocks, "table", GetParam()))
    found.push_back(blocks[row.block].keys.integer(row.row));
  std::ranges::sort(keys);
  EXPECT_EQ(found, keys);
}

TEST_P(KeyOrder, SortsTextByItsBytes) {
  for (std::size_t count : {1u, 2u, 9u, 500u, 5000u, 60'000u}) {
    Texts texts = alike_texts(count);
    std::vector<ParsedBlock> blocks = blocks_of(ColumnType::text, texts, 777);
    Texts found = texts_in_order(blocks, GetParam());
    std::ranges::sort(texts);
    ASSERT_TRUE(found == texts) << count;
  }
}

TEST_P(KeyOrder, SortsUuidsByTheirBytes) {
  Texts uuids;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    std::string uuid(16, '\0');
    for (std::size_t byte = 0; byte < 8; ++byte) {
      // Half of them differ in their last bytes alone.
      if (i % 2 == 0) uuid[byte] = static_cast<char>(mix64(i) >> (8 * byte));
      uuid[8 + byte] = static_cast<char>(mix64(i + 1) >> (8 * byte));
    }
    uuids.push_back(uuid);
  }
  std::vector<ParsedBlock> blocks = blocks_of(ColumnType::uuid, uuids, 1000);
  Texts found = texts_in_order(blocks, GetParam());
  std::ranges::sort(uuids);
  EXPECT_TRUE(found == uuids);
}

// Each key continues where the one before ended: no eight bytes tell more than
// a few of them apart.
TEST_P(KeyOrder, SortsKeysThatBeginEachOther) {
  for (const char* step : {"a", "\0"}) {
    Texts texts;
    for (std::size_t i = 0; i < 1500; ++i)
      texts.push_back(std::string((i * 7 + 3) % 1500, *step));
    std::vector<ParsedBlock> blocks = blocks_of(ColumnType::text, texts, 100);
    Texts found = texts_in_order(blocks, GetParam());
    std::ranges::sort(texts);
    EXPECT_TRUE(found == texts);
  }
}

TEST_P(KeyOrder, TakesBlocksThatAreInOrderByThemselves) {
  std::vector<ParsedBlock> blocks = blocks_of<std::int64_t>(
      ColumnType::int64, {40, 50, 60, 10, 20, 30, 70}, 3);
  std::vector<std::int64_t> found;
  for (RowRef row : rows_by_key(blocks, "table", GetParam()))
    found.push_back(blocks[row.block].keys.integer(row.row));
  EXPECT_THAT(found, testing::ElementsAre(10, 20, 30, 40, 50, 60, 70));
  EXPECT_TRUE(rows_by_key({}, "table", GetParam()).empty());
  EXPECT_TRUE(rows_by_key(blocks_of<std::int64_t>(ColumnType::int64, {}, 3),
                          "table", GetParam())
                  .empty());
}

TEST_P(KeyOrder, RefusesAKeyThatComesTwice) {
  for (std::size_t count : {2u, 20u, 20'000u}) {
    std::vector<std::int64_t> integers;
    for (std::uint64_t i = 0; i < count; ++i)
      integers.push_back(static_cast<std::int64_t>(mix64(i + 1) >> 1));
    integers.push_back(integers[count / 2]);
    EXPECT_EQ(refusal(blocks_of(ColumnType::int64, integers, 777), GetParam()),
              "two rows have the key " + std::to_string(integers.back()));

    Texts texts = alike_texts(count);
    texts.push_back(texts[texts.size() / 2]);
    EXPECT_EQ(refusal(blocks_of(ColumnType::text, texts, 777), GetParam()),
              "two rows have the key '" + printable(texts.back()) + "'");
  }
  EXPECT_THAT(
      refusal(blocks_of<std::int64_t>(ColumnType::int64, {1, 2, 2, 3}, 3),
              GetParam()),
      HasSubstr("the key 2"))
      << "in order, and twice";
  EXPECT_THAT(refusal(blocks_of<std::string>(
                          ColumnType::uuid,
                          {std::string(16, 'b'), std::string(16, 'a'),
                           std::string(16, 'b')},
                          1),
                      GetParam()),
              HasSubstr("'62626262-6262-6262-6262-626262626262'"));
}

// Whatever the threads do, the lowest key is the one that is named.
TEST_P(KeyOrder, NamesTheFirstOfManyKeysThatComeTwice) {
  std::vector<std::int64_t> integers;
  Texts texts;
  for (std::uint64_t i = 0; i < 40'000; ++i) {
    integers.push_back(static_cast<std::int64_t>(mix64(i / 2 + 1) >> 1));
    texts.push_back("row-" + std::to_string(integers.back()));
  }
  EXPECT_EQ(refusal(blocks_of(ColumnType::int64, integers, 500), GetParam()),
            "two rows have the key " +
                std::to_string(*std::ranges::min_element(integers)));
  EXPECT_EQ(refusal(blocks_of(ColumnType::text, texts, 500), GetParam()),
            "two rows have the key '" + *std::ranges::min_element(texts) + "'");
  std::vector<std::int64_t> same(20'000, 7);
  same.front() = 9;
  EXPECT_EQ(refusal(blocks_of(ColumnType::int64, same, 500), GetParam()),
            "two rows have the key 7");
  EXPECT_EQ(
      refusal(blocks_of(ColumnType::text, Texts(20'000, "x"), 500), GetParam()),
      "two rows have the key 'x'");
}

INSTANTIATE_TEST_SUITE_P(Workers, KeyOrder, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
