#include "penstock/tokenizer/scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/tokenizer/composition.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::string>;

std::vector<std::uint32_t> ends_of(Family family, const std::string& text,
                                   bool plain, bool padded) {
  std::string bytes = text + (padded ? std::string(64, 'x') : "");
  Scanner scanner(family, std::string_view(bytes).substr(0, text.size()),
                  padded);
  std::vector<std::uint32_t> ends, some(64);
  while (std::size_t count = plain ? scanner.next_plain(some.data(), 64)
                                   : scanner.next(some.data(), 64))
    ends.insert(ends.end(), some.begin(),
                some.begin() + static_cast<std::ptrdiff_t>(count));
  return ends;
}

Words words(Family family, const std::string& text) {
  Words all;
  std::size_t begin = 0;
  for (std::uint32_t end : ends_of(family, text, true, false)) {
    all.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return all;
}

TEST(Scanner, CutsWordsAsGpt2) {
  EXPECT_THAT(words(Family::gpt2, "I've a  tab\t's!'s 42x  "),
              ElementsAre("I", "'ve", " a", " ", " tab", "\t", "'s", "!'", "s",
                          " 42", "x", "  "));
}

TEST(Scanner, CutsWordsAsCl100k) {
  EXPECT_THAT(words(Family::cl100k, "DON'T 12345!\n\n (a)  \n x\tY"),
              ElementsAre("DON", "'T", " ", "123", "45", "!\n\n", " (", "a",
                          ")", "  \n", " x", "\tY"));
}

TEST(Scanner, TakesTheLongSAsOneOfAContraction) {
  EXPECT_THAT(words(Family::cl100k, "a'\xC5\xBF"),
              ElementsAre("a", "'\xC5\xBF"));
  EXPECT_THAT(words(Family::gpt2, "a'\xC5\xBF"),
              ElementsAre("a", "'", "\xC5\xBF"));
}

TEST(Scanner, CutsWordsAsQwen) {
  EXPECT_THAT(words(Family::qwen2, "a 12"), ElementsAre("a", " ", "1", "2"));
}

TEST(Scanner, CutsWordsAsO200k) {
  EXPECT_THAT(words(Family::o200k, "camelCase HTTPServer don'tX //\n/ 1234"),
              ElementsAre("camel", "Case", " HTTPServer", " don't", "X",
                          " //\n/", " ", "123", "4"));
  EXPECT_THAT(words(Family::o200k,
                    "A\xE6\x97\xA5"
                    "B"),
              ElementsAre("A\xE6\x97\xA5", "B"));
}

TEST(Scanner, CutsWordsAsTekken) {
  EXPECT_THAT(words(Family::tekken, "don't 12"),
              ElementsAre("don", "'t", " ", "1", "2"));
}

TEST(Scanner, CutsWordsAsDeepseek) {
  EXPECT_THAT(
      words(Family::deepseek, "x=a+1234 \xE6\x97\xA5z"),
      ElementsAre("x", "=a", "+", "123", "4", " ", "\xE6\x97\xA5", "z"));
}

TEST(Scanner, CutsWordsAsCommandR) {
  EXPECT_THAT(words(Family::command_r, "a  12 b"),
              ElementsAre("a", "  ", "1", "2", " b"));
}

/// Text of what patterns treat differently, mostly ASCII.
std::string drawn_text(std::uint64_t seed) {
  const std::string pieces[] = {"a",
                                "the",
                                "camelCASEs",
                                "S",
                                "'",
                                "'s",
                                "'LL",
                                "'re",
                                " ",
                                "  ",
                                "\n",
                                "\r",
                                "\t",
                                "\v",
                                "!",
                                "/",
                                ".",
                                "1",
                                "23",
                                "456",
                                "\n   \n",
                                "\n        ",
                                "word",
                                "!!",
                                "'\xC5\xBF",
                                "\xC3\xA9",
                                "\xC2\xA0",
                                "\xE6\x97\xA5",
                                "\xE3\x80\x80",
                                std::string(70, 'q'),
                                std::string(70, ' '),
                                std::string(70, '7'),
                                std::string(70, '-')};
  std::string text;
  std::uint64_t rare = seed % 4;
  for (std::uint64_t i = 0; i < 40 + seed % 60; ++i) {
    Random random(seed, 0, i, 0);
    std::uint64_t most = random.below(16) < rare ? std::size(pieces) : 24;
    text += pieces[random.below(most)];
  }
  return text;
}

TEST(Scanner, CutsTheSameWordsWithVectorInstructions) {
  for (Family family : {Family::gpt2, Family::cl100k, Family::qwen2,
                        Family::o200k, Family::tekken}) {
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
      std::string text = drawn_text(seed);
      auto expected = ends_of(family, text, true, false);
      ASSERT_EQ(ends_of(family, text, false, false), expected) << text;
      ASSERT_EQ(ends_of(family, text, false, true), expected) << text;
    }
  }
}

TEST(Scanner, KnowsAPatternByItsText) {
  EXPECT_EQ(family_of("(a+)+$"), std::nullopt);
  EXPECT_EQ(family_of(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|)"
                      R"( ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
            Family::gpt2);
}

std::string composed(const std::string& text) {
  std::string out;
  unicode::append_composed(text, out);
  return out;
}

TEST(Composition, ComposesAndOrdersMarks) {
  EXPECT_EQ(composed("plain"), "plain");
  EXPECT_EQ(composed("e\u0301"), "\u00e9");
  EXPECT_EQ(composed("a\u0301\u0316"), "\u00e1\u0316");
  EXPECT_EQ(composed("xa\u0316\u0301\u0301y"), "x\u00e1\u0316\u0301y");
  EXPECT_EQ(composed("\u212b"), "\u00c5");
  EXPECT_EQ(composed("\u0958"), "\u0915\u093c");  // never composed again
  EXPECT_EQ(composed("\u1100\u1161\u11a8"), "\uac01");
}

TEST(Composition, LeavesWhatCameAfterUnicode9) {
  EXPECT_EQ(composed("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(composed("a\u0301\u0898\u0316"), "\u00e1\u0898\u0316");
}

TEST(Classes, AreThoseOfUnicode16) {
  auto kind = [](std::uint32_t code) { return unicode::classes()[code]; };
  EXPECT_EQ(kind('A'), unicode::kUpper);
  EXPECT_EQ(kind(0x1C5), unicode::kTitle);
  EXPECT_EQ(kind(0x3000), unicode::kSpace);
  EXPECT_EQ(kind(0x200B), unicode::kOther);
  EXPECT_EQ(kind(0xB2), unicode::kOtherNumber);
  EXPECT_EQ(kind(0x1C89), unicode::kUpper);   // since 16.0
  EXPECT_EQ(kind(0x16EA0), unicode::kOther);  // since 17.0
  EXPECT_EQ(kind(0x10FFFF), unicode::kOther);
}

}  // namespace
}  // namespace penstock
