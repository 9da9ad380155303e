#include "penstock/tokenizer/token_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "penstock/base/random.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<std::string, std::uint32_t>> all_of(const TokenIds& ids) {
  std::vector<std::pair<std::string, std::uint32_t>> all;
  ids.each([&all](const TokenIds::Token& token) {
    all.emplace_back(token.text, token.id);
  });
  return all;
}

TEST(TokenIds, KeepTheOrderAndTheFirstIdUnlessAnotherIsSet) {
  TokenIds ids;
  ids.add("b", 7);
  ids.add("", 1);
  ids.add("b", 8);
  ids.add("a", 2);
  ids.set("", 3);
  ids.set("new", 4);
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_THAT(all_of(ids), ElementsAre(Pair("b", 7), Pair("", 3), Pair("a", 2),
                                       Pair("new", 4)));
  EXPECT_EQ(ids.find("b"), 7u);
  EXPECT_EQ(ids.find("c"), std::nullopt);
}

TEST(TokenIds, FindsWhatAMapFindsAmongMany) {
  TokenIds ids;
  std::map<std::string, std::uint32_t> map;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    Random random(1, 0, i, 0);
    const std::string text = std::to_string(random.below(15000));
    const auto id = static_cast<std::uint32_t>(i);
    ids.add(text, id);
    map.emplace(text, id);
  }
  EXPECT_EQ(ids.size(), map.size());
  for (int number = 0; number < 16000; ++number) {
    const std::string text = std::to_string(number);
    const auto found = map.find(text);
    const std::uint64_t hash = TokenIds::hash_of(text);
    ids.fetch_slot(hash);
    ids.fetch_token(hash);
    ASSERT_EQ(ids.find(text, hash),
              found == map.end() ? std::nullopt : std::optional(found->second));
  }
}

}  // namespace
}  // namespace penstock
