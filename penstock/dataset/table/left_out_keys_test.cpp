#include "penstock/dataset/table/left_out_keys.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace penstock {
namespace {

KeyList integers(std::int64_t first, std::int64_t end) {
  KeyList keys;
  for (std::int64_t key = first; key < end; ++key) keys.append_integer(key);
  return keys;
}

LeftOutKeys of(const KeyList& keys) {
  LeftOutKeys left_out;
  for (std::int64_t at = 0; at < keys.size(); ++at) left_out.add(keys, at);
  return left_out;
}

TEST(LeftOutKeys, KnowTheirKeys) {
  LeftOutKeys left_out = of(integers(10, 20));
  left_out.merge(of(integers(30, 40)));
  left_out.sort();
  EXPECT_EQ(left_out.count(), 20);
  EXPECT_FALSE(left_out.twice());
  KeyList asked = integers(0, 50);
  for (std::int64_t at = 0; at < 50; ++at)
    EXPECT_EQ(left_out.contains(asked, at),
              (at >= 10 && at < 20) || (at >= 30 && at < 40));
}

TEST(LeftOutKeys, FindAKeyThatCameTwiceInOneBlockOrInTwo) {
  for (std::int64_t first : {19, 30}) {
    LeftOutKeys left_out = of(integers(10, 20));
    left_out.merge(of(integers(first, 31)));
    if (first == 30) left_out.merge(of(integers(30, 31)));
    left_out.sort();
    EXPECT_EQ(left_out.twice(), std::to_string(first));
  }
}

TEST(LeftOutKeys, HoldTheSameFewOfManyWhateverTheOrder) {
  constexpr std::int64_t kBlock = 1000, kBlocks = 200;
  LeftOutKeys up, down;
  for (std::int64_t b = 0; b < kBlocks; ++b) {
    up.merge(of(integers(b * kBlock, (b + 1) * kBlock)));
    down.merge(
        of(integers((kBlocks - 1 - b) * kBlock, (kBlocks - b) * kBlock)));
  }
  up.sort();
  down.sort();
  EXPECT_EQ(up.count(), kBlock * kBlocks);
  KeyList asked = integers(0, kBlock * kBlocks);
  std::int64_t held = 0;
  for (std::int64_t at = 0; at < asked.size(); ++at) {
    held += up.contains(asked, at);
    ASSERT_EQ(up.contains(asked, at), down.contains(asked, at)) << at;
  }
  EXPECT_LE(held, static_cast<std::int64_t>(LeftOutKeys::kMost));
  EXPECT_GT(held, static_cast<std::int64_t>(LeftOutKeys::kMost) / 2);
}

TEST(LeftOutKeys, FindOneKeyOfVeryManyRows) {
  LeftOutKeys left_out;
  KeyList one = integers(7, 8);
  for (int row = 0; row < 200'000; ++row) left_out.add(one, 0);
  left_out.sort();
  EXPECT_EQ(left_out.twice(), "7");
}

}  // namespace
}  // namespace penstock
