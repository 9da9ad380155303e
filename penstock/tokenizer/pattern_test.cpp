#include "penstock/tokenizer/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches(std::string_view pattern,
                                 std::string_view text) {
  std::string why;
  const std::optional<Pattern> read = Pattern::parse(pattern, why);
  if (!read) return {"refused: " + why};
  PatternSearch search(*read, text);
  std::vector<std::string> found;
  std::size_t at = 0;
  while (auto match = search.next(at)) {
    at = match->end;
    found.emplace_back(text.substr(match->begin, at - match->begin));
  }
  return found;
}

TEST(Pattern, FindsCharactersSetsAndRepeats) {
  EXPECT_THAT(matches("b+", "abbcb"), ElementsAre("bb", "b"));
  EXPECT_THAT(matches("[^a-c]|ca?", "abcad"), ElementsAre("ca", "d"));
  EXPECT_THAT(matches(R"(\p{L}+|\p{N}{1,3})", "a\u00e91234"),
              ElementsAre("a\u00e9", "123", "4"));
  EXPECT_THAT(matches(R"([\w&&[^\d_]]+)", "ab12_c"), ElementsAre("ab", "c"));
  EXPECT_THAT(matches(R"([\p{Han}]+)", "a\u6f22\u5b57b"),
              ElementsAre("\u6f22\u5b57"));
  EXPECT_THAT(matches(R"(\x41|\u6f22|\n)", "A\u6f22\n"),
              ElementsAre("A", "\u6f22", "\n"));
}

TEST(Pattern, CountsFractionsAsWordsOutsideOfBracketsAlone) {
  EXPECT_THAT(matches(R"(\w+)", "a\u00bd\u00b2"), ElementsAre("a\u00bd\u00b2"));
  EXPECT_THAT(matches(R"([\w]+)", "a\u00bdb"), ElementsAre("a", "b"));
  EXPECT_THAT(matches(R"([^\w\s]+)", "a\u00bd!"), ElementsAre("\u00bd!"));
}

TEST(Pattern, TakesTheFirstAlternativeAndGivesBack) {
  EXPECT_THAT(matches("a|ab", "ab"), ElementsAre("a"));
  EXPECT_THAT(matches("a*ab", "aaab"), ElementsAre("aaab"));
  EXPECT_THAT(matches("(?:ab){2,3}", "ababababab"),
              ElementsAre("ababab", "abab"));
  EXPECT_THAT(matches("a+?b", "aab"), ElementsAre("aab"));
  EXPECT_THAT(matches("a??ab", "aab"), ElementsAre("aab"));
}

TEST(Pattern, KeepsWhatIsPossessive) {
  EXPECT_TRUE(matches("a++ab", "aaab").empty());
  EXPECT_TRUE(matches("(?>a*)ab", "aaab").empty());
  EXPECT_THAT(matches("a{1,2}+b", "aaaab"), ElementsAre("aaaab"));
}

TEST(Pattern, LooksAheadAndBehind) {
  EXPECT_THAT(matches(R"(\s+(?!\S)|\s)", "   a "), ElementsAre("  ", " ", " "));
  EXPECT_THAT(matches("a(?=b)", "abaa"), ElementsAre("a"));
  EXPECT_THAT(matches("(?<=b)a|(?<!b)c", "bacbc"), ElementsAre("a", "c"));
  EXPECT_THAT(matches("^a|a$", "aaa\nab"), ElementsAre("a", "a", "a"));
}

TEST(Pattern, IgnoresCaseOfAscii) {
  EXPECT_THAT(matches("(?i:'s|'k)", "'S'\u017f'\u212a's"),
              ElementsAre("'S", "'\u017f", "'\u212a", "'s"));
  EXPECT_THAT(matches("(?i)a|b", "AB"), ElementsAre("A", "B"));
}

TEST(Pattern, NamesWhatItDoesNotKnow) {
  for (auto [pattern, says] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"(a*)*", "may be empty"},
           {"a*", "match no character"},
           {"(?<=a)(?=b)", "match no character"},
           {"a|^", "match no character"},
           {"(a", "without its ')'"},
           {"a)", "without its '('"},
           {"[a", "without its ']'"},
           {"[]", "an empty set"},
           {"*a", "a repeat of nothing"},
           {R"(\X)", "\\X"},
           {R"((a)\1)", "\\1"},
           {R"(\p{Greek})", "Greek"},
           {"(?i:st)", "(?i) of 'st'"},
           {"(?i:\u00e9)", "not ASCII"},
           {"[[:alpha:]]", "[:alpha:]"},
           {"(?<!ab)c", "more than one character"},
           {"(?<n>a)", "the group (?<n"},
           {"a{2000}", "more than 1000"},
           {"(?:(?:a{1000}){1000}){1000}", "so many steps"},
           {"[z-a]", "a range"}}) {
    std::string why;
    EXPECT_FALSE(Pattern::parse(pattern, why)) << pattern;
    EXPECT_THAT(why, HasSubstr(std::string(says))) << pattern;
  }
}

TEST(Pattern, EndsForEveryText) {
  const std::string hostile(20000, 'a');
  EXPECT_TRUE(matches("(a+)+c", std::string(200, 'a')).empty());
  EXPECT_THROW(matches("(?=(?:a|aa)+c)a+b", std::string(20000, 'a')), Error);
  EXPECT_EQ(matches("(?:a|aa)+", hostile).size(), 1u);
}

}  // namespace
}  // namespace penstock
