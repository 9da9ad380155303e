#include "penstock/tokenizer/scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/tokenizer/ascii_words.h"
#include "penstock/tokenizer/composition.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::string>;

std::vector<std::uint32_t> ends_of(Family family, const std::string& text,
                                   bool plain, bool padded) {
  // Nothing behind the text may be read, but padding.
  std::vector<char> bytes(text.begin(), text.end());
  if (padded) bytes.resize(text.size() + 64, 'x');
  Scanner scanner(family, {bytes.data(), text.size()}, padded);
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

TEST(Scanner, EndsWithTheTextsLastCharacter) {
  EXPECT_THAT(words(Family::gpt2, "1\u00e9"), ElementsAre("1", "\u00e9"));
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

TEST(Scanner, CutsTheSameWordsWithTheInstructionsOfEachProcessor) {
  for (auto* of : {scanner::ascii_words_avx2, scanner::ascii_words_avx512}) {
    for (Family family : {Family::gpt2, Family::cl100k, Family::qwen2,
                          Family::o200k, Family::tekken}) {
      scanner::AsciiWords* words = of(family);
      if (words == nullptr) continue;  // this processor has them not
      for (std::uint64_t seed = 0; seed < 500; ++seed) {
        const std::string text = drawn_text(seed);
        const auto expected = ends_of(family, text, true, false);
        std::vector<std::uint32_t> ends(1024 + 64);
        const std::string bytes = text + std::string(64, 'x');
        const std::size_t count =
            words({bytes.data(), text.size()}, true, 0, ends);
        ASSERT_LE(count, expected.size());
        ends.resize(count);
        EXPECT_TRUE(std::equal(ends.begin(), ends.end(), expected.begin()))
            << text;
      }
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

std::string utf8(std::uint32_t code) {
  std::string text;
  unicode::append(code, text);
  return text;
}

/// Code points, from the first up to, but not including, the last.
using Range = std::pair<std::uint32_t, std::uint32_t>;

// Blocks of 64 bytes of these are left unchanged without a look at each.
TEST(Composition, LeavesWhatChineseIsWrittenWithWhateverIsBesideIt) {
  for (auto [begin, end] :
       {Range{0x3000, 0x302A}, Range{0x4000, 0xA000}, Range{0xFF00, 0xFF40}})
    for (std::uint32_t code = begin; code < end; ++code)
      for (const char* beside : {"\u0301", "\u3099", "\u0338", "e"}) {
        const std::string text = beside + utf8(code) + beside;
        ASSERT_EQ(composed(text), text) << code;
      }
}

TEST(Composition, ComposesWhereverABlockEnds) {
  for (const char* before : {"", "a", "\u00e9", "\u4e2d", "\uff0c", "\u3002"})
    for (const char* filled : {"x", "\u4e2d", "\u3042", "\uff0c", "\u3002"})
      for (int count = 0; count < 70; ++count) {
        std::string text = before;
        for (int i = 0; i < count; ++i) text += filled;
        EXPECT_EQ(composed(text + "e\u0301" + text + "\u304b\u3099"),
                  text + "\u00e9" + text + "\u304c");
        EXPECT_EQ(composed(text + "\uf900" + text), text + "\u8c48" + text);
      }
}

TEST(Utf8, IsCheckedToTheLastByteWhereverABlockEnds) {
  for (const char* filled : {"x", "\u00e9", "\u4e2d", "\U0001f600", "\ud55c"})
    for (const char* bad : {"\xff", "\x80", "\xc3", "\xe4\xb8", "\xc0\x80",
                            "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
      for (int count = 0; count < 70; ++count) {
        std::string text, behind(70, 'y');
        for (int i = 0; i < count; ++i) text += filled;
        EXPECT_EQ(unicode::first_invalid(text + behind), text.size() + 70);
        EXPECT_EQ(unicode::first_invalid(text + bad + behind), text.size());
        EXPECT_EQ(unicode::first_invalid(text + bad), text.size());
      }
}

TEST(Classes, AreOtherLettersWhereIdeographsAreSkipped) {
  for (std::uint32_t code = 0x4E00; code < 0xA000; ++code)
    ASSERT_EQ(unicode::classes()[code], unicode::kOtherLetter) << code;
  std::string text;
  for (std::uint32_t code = 0x4DF0; code < 0x4E20; ++code) text += utf8(code);
  EXPECT_EQ(unicode::skip_ideographs(text, 0), 0u);
  const std::string run(text.substr(3 * 16));
  for (std::size_t size = 3; size <= run.size(); size += 3)
    for (const char* behind : {"", "a", "\u3002", "\u4dff", "\U0001f600"}) {
      const std::string all = run.substr(0, size) + behind;
      const std::size_t end = unicode::skip_ideographs(all, 0);
      EXPECT_LE(end, size);
#if defined(__SSE2__)
      EXPECT_GT(end + 18, size);  // the last few may be left
#endif
      EXPECT_EQ(end % 3, 0u);
    }
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
