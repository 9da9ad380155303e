#include "penstock/tokenizer/own_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "penstock/base/random.h"

namespace penstock {
namespace {

TEST(OwnTokens, AreThoseThatTheirBytesMergeTo) {
  std::size_t own_ones = 0, others = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, 0, 0, 0);
    std::vector<std::string> tokens{"a", "b", "c"};
    std::vector<Merges::Merge> merges;
    for (int i = 0; i < 60; ++i) {
      const auto first =
                     static_cast<std::uint32_t>(random.below(tokens.size())),
                 second =
                     static_cast<std::uint32_t>(random.below(tokens.size()));
      const std::string whole = tokens[first] + tokens[second];
      if (whole.size() > 12 || std::ranges::count(tokens, whole) > 0) continue;
      merges.push_back(
          {first, second, static_cast<std::uint32_t>(tokens.size())});
      tokens.push_back(whole);
    }
    const Merges made(merges);
    ASSERT_TRUE(made.in_order());
    const std::uint32_t bytes[] = {0, 1, 2, Merges::kNone};
    const std::vector<bool> own = own_tokens(made, bytes, tokens.size());
    Merger merger(made);
    for (std::uint32_t id = 0; id < tokens.size(); ++id) {
      std::vector<std::uint32_t> symbols;
      for (char c : tokens[id])
        symbols.push_back(static_cast<std::uint32_t>(c - 'a'));
      const bool is_one = merger.merge(symbols) == 1 && symbols[0] == id;
      ASSERT_EQ(own[id], is_one) << tokens[id] << " of seed " << seed;
      ++(is_one ? own_ones : others);
    }
  }
  EXPECT_GT(own_ones, 1000u);
  EXPECT_GT(others, 1000u);
}

}  // namespace
}  // namespace penstock
