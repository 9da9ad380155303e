#include <gtest/gtest.h>

#include "penstock/base/random.h"
#include "penstock/tokenizer/fake/tokenizer_file.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {
namespace {

using Ids = std::vector<std::uint32_t>;

const TokenizerFile kFile({{"a", "b"},
                           {"ab", "c"},
                           {"b", "a"},
                           {"Ġ", "abc"},
                           {"c", "c"},
                           {"abc", "abc"},
                           {"a", "a"},
                           {"Ġ", "ba"},
                           {"ab", "ab"},
                           {"cc", "a"},
                           {"bb", "bb"},
                           {"b", "b"}});

std::string random_word(Random& random, std::size_t most) {
  std::string word;
  const std::size_t size = 1 + random.below(most);
  for (std::size_t i = 0; i < size; ++i)
    word += static_cast<char>('a' + random.below(3));
  return word;
}

/// Each word by itself, with nothing that an encoder remembers.
Ids one_by_one(Encoder& encoder, const std::string& text) {
  Ids ids;
  std::vector<TokenOffsets> offsets;
  encoder.encode(text, false, ids, offsets);
  return ids;
}

TEST(EncoderWords, NewOnesTogetherBecomeWhatEachBecomesAlone) {
  for (bool ignores : {false, true}) {
    TokenizerFile file = kFile;
    if (ignores) file.set_model("ignore_merges", "true");
    Encoder encoder(Tokenizer::parse(file.text(), "t.json"));
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      Random random(seed, 0, 0, 0);
      std::string text;
      for (int i = 0; i < 400; ++i) {  // many are there twice
        text += i % 7 == 0 ? "é" : " ";
        text += random_word(random, i % 10 == 0 ? 40 : i % 3 == 0 ? 3 : 16);
      }
      Ids ids;
      encoder.encode(text, false, ids);
      ASSERT_EQ(ids, one_by_one(encoder, text)) << "seed " << seed;
    }
  }
}

// What a pre-tokenizer removes belongs to no word, though it lies before one.
TEST(EncoderWords, NothingThatIsRemovedBetweenThemCounts) {
  TokenizerFile blanks({{"a", "b"}, {"Ġ", "ab"}, {"c", "c"}});
  blanks.set("pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
      {"type": "Whitespace"}, {"type": "ByteLevel", "add_prefix_space": false,
                               "use_regex": false}]})");
  TokenizerFile behind_a({{"x", "c"}, {"c", "c"}});
  behind_a.set("pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated"},
      {"type": "Split", "pattern": {"Regex": "(?<=a)x"}, "behavior": "Removed"},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  for (const TokenizerFile* file : {&blanks, &behind_a}) {
    Encoder encoder(Tokenizer::parse(file->text(), "t.json"));
    for (const char* text :
         {"cc ab", "ab cc", "xcc", "axcc", "xcc axcc", "a  b"}) {
      Ids ids;
      encoder.encode(text, false, ids);
      EXPECT_EQ(ids, one_by_one(encoder, text)) << text;
    }
  }
}

TEST(EncoderWords, ThoseOfALargeDocumentAreRememberedBeyondWhatIsKept) {
  Encoder encoder(Tokenizer::parse(kFile.text(), "t.json"));
  Random random(1, 0, 0, 0);
  std::string text;
  while (text.size() < (std::size_t{3} << 20)) {
    text += ' ' + random_word(random, 15);
    if (random.below(1000) == 0) text += ' ' + random_word(random, 2000);
  }
  const Ids alone = one_by_one(encoder, text);
  for (int time = 0; time < 2; ++time) {
    Ids ids;
    encoder.encode(text, false, ids);
    EXPECT_TRUE(ids == alone) << "time " << time;
  }
}

}  // namespace
}  // namespace penstock
