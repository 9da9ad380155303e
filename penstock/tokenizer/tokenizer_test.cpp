#include "penstock/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/tokenizer/fake/tokenizer_file.h"

namespace penstock {
namespace {

using Merged = std::vector<std::pair<std::string, std::string>>;
using Ids = std::vector<std::uint32_t>;
using testing::ElementsAre;
using testing::HasSubstr;

Ids encoded(const TokenizerFile& file, std::string_view text,
            bool special = false) {
  Encoder encoder(Tokenizer::parse(file.text(), "t.json"));
  Ids ids, again;
  encoder.encode(text, special, ids);
  encoder.encode(text, special, again);  // now from the words it remembers
  EXPECT_EQ(ids, again);
  return ids;
}

const TokenizerFile kLetters(Merged{{"a", "b"}, {"ab", "c"}, {"Ġ", "abc"}});

TEST(Tokenizer, MergesTheLowestRankFirst) {
  std::string json = kLetters.text();
  auto tokenizer = Tokenizer::parse(json, "tokenizer.json");
  Encoder encoder(tokenizer);
  std::vector<std::uint32_t> ids;
  encoder.encode("ab abc", false, ids);
  EXPECT_THAT(ids, ElementsAre(256, 258));
  std::string text = tokenizer->decode(ids, true);
  EXPECT_EQ(text, "ab abc");
}

TEST(Tokenizer, MergesTheLeftmostOfEqualPairs) {
  TokenizerFile file(Merged{{"a", "a"}});
  EXPECT_THAT(encoded(file, "aaa"), ElementsAre(256, 'a'));
}

TEST(Tokenizer, MergesWordsTooLongForAScanAlike) {
  TokenizerFile file(Merged{{"a", "a"}, {"aa", "aa"}});
  Ids ids = encoded(file, std::string(1001, 'a'));
  EXPECT_EQ(ids.size(), 251u);
  EXPECT_EQ(ids.front(), 257u);
  EXPECT_EQ(ids.back(), std::uint32_t{'a'});
}

TEST(Tokenizer, TakesAWordThatIsATokenWholeWhereMergesAreIgnored) {
  TokenizerFile file(Merged{{"a", "b"}, {"c", "d"}, {"b", "c"}, {"a", "bc"}});
  EXPECT_THAT(encoded(file, "abc"), ElementsAre(256, 'c'));
  file.set_model("ignore_merges", "true");
  EXPECT_THAT(encoded(file, "abc"), ElementsAre(259));
}

/// Merges of what a text holds, made as they are trained, and some of pairs by
/// chance: many begin or end within a character.
Merged random_merges(const std::string& text, Random& random) {
  std::vector<std::string> tokens;
  for (char c : text)
    tokens.push_back(character_of_byte(static_cast<unsigned char>(c)));
  Merged merges;
  std::set<std::string> known;
  for (int i = 0; i < 60; ++i) {
    const std::size_t at = random.below(tokens.size() - 1);
    const std::size_t other =
        i % 8 == 0 ? random.below(tokens.size() - 1) : at + 1;
    const std::string first = tokens[at], second = tokens[other];
    if (!known.insert(first + second).second) continue;
    merges.emplace_back(first, second);
    for (std::size_t t = 0; t + 1 < tokens.size(); ++t)
      if (tokens[t] == first && tokens[t + 1] == second) {
        tokens[t] += second;
        tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(t) + 1);
      }
    if (tokens.size() < 4) break;
  }
  return merges;
}

// As tokenizers.models.BPE() is made by itself.
TEST(Tokenizer, ACharacterThatIsLeftOutPartsNoMerge) {
  Encoder encoder(Tokenizer::parse(R"({"version": "1.0", "model": {
      "type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
      "merges": [["a", "b"], ["ab", "c"]]}})",
                                   "t.json"));
  Ids ids;
  encoder.encode("aXbXc", false, ids);
  EXPECT_THAT(ids, ElementsAre(4));
}

// The tokenizers library gives these ids: its reader of numbers rounds the
// first score twice, and of two sums that are nearly equal the other is larger.
TEST(Tokenizer, ScoresAreThoseThatTheTokenizersLibraryReads) {
  Encoder encoder(Tokenizer::parse(R"({"version": "1.0", "model": {
      "type": "Unigram", "unk_id": 0, "vocab": [
        ["<unk>", 0.0], ["a", -10.773114209522939], ["/", -5.84183735841815],
        ["//", -5.37607860950263]]}})",
                                   "t.json"));
  Ids ids;
  encoder.encode("a///", false, ids);
  EXPECT_THAT(ids, ElementsAre(1, 2, 3));
}

TEST(Tokenizer, WordsOfLanguagesWithoutSpacesAreCutWhereNoMergeJoins) {
  // They share first and last bytes: U+4F60, U+4F61, U+5F60, U+3042, U+3082.
  const std::string characters[] = {"你", "佡", "彠", "あ", "も", "é", "x"};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, 0, 0, 0);
    auto word = [&](std::size_t count) {
      std::string made;
      for (std::size_t i = 0; i < count; ++i)
        made += characters[random.below(std::size(characters))];
      return made;
    };
    TokenizerFile file(random_merges(word(300), random));
    if (seed % 2 == 1) file.set_model("ignore_merges", "true");
    Encoder encoder(Tokenizer::parse(file.text(), "t.json"));
    for (std::size_t count : {3u, 6u, 20u, 200u, 20u, 20u}) {
      const std::string text = word(count);
      Ids ids, whole;
      std::vector<TokenOffsets> offsets;
      encoder.encode(text, false, ids);
      encoder.encode(text, false, whole, offsets);  // is not cut
      ASSERT_EQ(ids, whole) << "seed " << seed << ": " << text;
    }
  }
}

TEST(Tokenizer, AWordThatIsATokenIsTakenOnlyWhereItsBytesMergeToIt) {
  // "abc" is a token that no merge reaches: "b" and "c" are joined first.
  const Merged merges{{"b", "c"}, {"a", "b"}, {"ab", "c"}};
  EXPECT_THAT(encoded(TokenizerFile(merges), "abc"), ElementsAre('a', 256));
}

TEST(Tokenizer, TakesMergesAsTextsOrAsPairs) {
  TokenizerFile file = kLetters;
  file.set_model("merges", R"([["a", "b"], ["ab", "c"], ["Ġ", "abc"]])");
  EXPECT_THAT(encoded(file, "ab abc"), ElementsAre(256, 258));
}

TEST(Tokenizer, FindsAddedTokensLongestFirst) {
  TokenizerFile file;
  file.set("added_tokens", R"([
      {"id": 256, "content": "<e>", "special": true, "normalized": false},
      {"id": 257, "content": "<e>x", "special": false, "normalized": false}])");
  EXPECT_THAT(encoded(file, "a<e>b<e>x"), ElementsAre('a', 256, 'b', 257));
}

TEST(Tokenizer, AddedTokensTakeWhiteSpaceAndKeepOutOfWords) {
  TokenizerFile file;
  file.set("added_tokens", R"([
      {"id": 256, "content": "<l>", "lstrip": true},
      {"id": 257, "content": "<r>", "rstrip": true},
      {"id": 258, "content": "ab", "single_word": true}])");
  EXPECT_THAT(encoded(file, "x \t<l>"), ElementsAre('x', 256));
  EXPECT_THAT(encoded(file, "<r> \n\xE3\x80\x80x"), ElementsAre(257, 'x'));
  EXPECT_THAT(encoded(file, "ab abc"), ElementsAre(258, ' ', 'a', 'b', 'c'));
}

TEST(Tokenizer, PutsTheTemplateAroundADocument) {
  TokenizerFile file;
  file.set("post_processor", R"({"type": "TemplateProcessing", "single": [
      {"SpecialToken": {"id": "<s>", "type_id": 0}},
      {"Sequence": {"id": "A", "type_id": 0}},
      {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [7], "tokens": ["<s>"]},
        "</s>": {"id": "</s>", "ids": [8, 9], "tokens": ["x", "y"]}}})");
  EXPECT_THAT(encoded(file, "a", true), ElementsAre(7, 'a', 8, 9));
  EXPECT_THAT(encoded(file, "a", false), ElementsAre('a'));
}

TEST(Tokenizer, RefusesANormalizerThatFillsTheMemory) {
  const std::string much(1000, 'x');
  const std::string replace =
      R"({"type": "Replace", "pattern": {"String": "x"}, "content": ")" + much +
      R"("})";
  for (const std::string& steps :
       {replace + "," + replace + "," + replace,
        R"({"type": "Replace", "pattern": {"Regex": "."}, "content": ")" +
            much + R"("},)" + replace + "," + replace}) {
    TokenizerFile file;
    file.set("normalizer",
             R"({"type": "Sequence", "normalizers": [)" + steps + "]}");
    try {
      encoded(file, std::string(1000, 'x'));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "tokenizer.growth");
      EXPECT_THAT(error.what(), HasSubstr("bytes of one document"));
    }
  }
}

// As transformers calls a tokenizer, whatever was set when it was saved.
TEST(Tokenizer, LeavesADocumentWholeWhateverTheFileSaysOfItsLength) {
  TokenizerFile file;
  file.set("truncation", R"({"max_length": 5, "stride": 0,
                             "direction": "Right", "strategy": "LongestFirst"})");
  file.set("padding", R"({"strategy": {"Fixed": 16}, "pad_id": 0})");
  EXPECT_THAT(encoded(file, "abcdefgh"),
              ElementsAre('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'));
}

TEST(Tokenizer, ComposesWhereTheFileSaysNfc) {
  TokenizerFile file;
  EXPECT_EQ(encoded(file, "e\xCC\x81").size(), 3u);
  file.set("normalizer", R"({"type": "NFC"})");
  EXPECT_THAT(encoded(file, "e\xCC\x81"), ElementsAre(0xC3, 0xA9));
}

TEST(Tokenizer, PutsASpaceBeforeText) {
  TokenizerFile file(Merged{{"Ġ", "a"}});
  file.set("pre_tokenizer",
           R"({"type": "ByteLevel", "add_prefix_space": true})");
  EXPECT_THAT(encoded(file, "a"), ElementsAre(256));
  EXPECT_THAT(encoded(file, " a"), ElementsAre(256));
}

TEST(Tokenizer, CountsWhatIsNoUtf8AndReplacesIt) {
  Encoder encoder(Tokenizer::parse(TokenizerFile().text(), "t.json"));
  Ids ids;
  encoder.encode("a\xFFz\xE2\x82", false, ids);
  EXPECT_THAT(ids, ElementsAre('a', 0xEF, 0xBF, 0xBD, 'z', 0xEF, 0xBF, 0xBD));
  EXPECT_EQ(encoder.invalid_utf8(), 2u);
}

TEST(Tokenizer, NamesItsTokens) {
  TokenizerFile file = kLetters;
  file.set("added_tokens",
           R"([{"id": 259, "content": "<e>", "special": true}])");
  auto tokenizer = Tokenizer::parse(
      file.text(), "t.json",
      R"({"eos_token": "<e>", "bos_token": {"content": "abc"}, "x": 1})");
  EXPECT_EQ(tokenizer->vocabulary_size(), 260u);
  EXPECT_EQ(tokenizer->id_of("abc"), 257u);
  EXPECT_EQ(tokenizer->id_of("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer->token_of(258), "Ġabc");
  EXPECT_EQ(tokenizer->token_of(260), std::nullopt);
  EXPECT_EQ(tokenizer->eos(), 259u);
  EXPECT_EQ(tokenizer->bos(), 257u);
  EXPECT_EQ(tokenizer->pad(), std::nullopt);
  EXPECT_EQ(tokenizer->decode({257, 259}, true), "abc");
  EXPECT_EQ(tokenizer->decode({257, 259, 9999}, false), "abc<e>");
  EXPECT_NE(tokenizer->fingerprint(),
            Tokenizer::parse(kLetters.text(), "t.json")->fingerprint());
}

TEST(Tokenizer, WritesAddedTokensAsTheyAreNormalised) {
  TokenizerFile file;
  file.set("normalizer", R"({"type": "NFC"})");
  file.set("added_tokens",
           "[{\"id\": 256, \"content\": \"\u6f22e\u0301\"},"
           " {\"id\": 257, \"content\": \"\u6f22E\u0301\","
           "  \"normalized\": false}]");
  auto tokenizer = Tokenizer::parse(file.text(), "t.json");
  EXPECT_EQ(tokenizer->decode({256, 257}, false), "\u6f22\u00e9\u6f22E\u0301");
}

TEST(Tokenizer, DecodesPieceByPiece) {
  auto tokenizer = Tokenizer::parse(TokenizerFile().text(), "t.json");
  Decoder decoder(tokenizer, true);
  EXPECT_EQ(decoder.add(0xE2), "");
  EXPECT_EQ(decoder.add(0x82), "");
  EXPECT_EQ(decoder.add(0xAC), "\xE2\x82\xAC");
  EXPECT_EQ(decoder.add(0xFF), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.add(0xE2), "");
  EXPECT_EQ(decoder.add('a'),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(decoder.add(0xC3), "");
  EXPECT_EQ(decoder.finish(), "\xEF\xBF\xBD");
}

TEST(Tokenizer, ReadsTheSettingsBesideTheFile) {
  std::filesystem::path folder =
      testing::TempDir() + "penstock_tokenizer" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::string path = folder / "tokenizer.json";
  std::ofstream(path) << kLetters.text();
  EXPECT_EQ(Tokenizer::load(path)->eos(), std::nullopt);
  std::ofstream(folder / "tokenizer_config.json") << R"({"eos_token": "abc"})";
  EXPECT_EQ(Tokenizer::load(path)->eos(), 257u);
  std::filesystem::remove_all(folder);
}

TEST(Tokenizer, RefusesADocumentThatIsTooLong) {
  Encoder encoder(Tokenizer::parse(TokenizerFile().text(), "t.json"));
  std::string_view long_one("a", std::size_t{1} << 32);  // is not read
  Ids ids;
  try {
    encoder.encode(long_one, false, ids);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::transform);
    EXPECT_EQ(error.parts().code, "tokenizer.document");
  }
}

std::string failure(const std::string& json, std::string& code) {
  try {
    Tokenizer::parse(json, "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    code = error.parts().code;
    return error.what();
  }
  return "no error";
}

/// A part, a value for it, and what is said of it.
struct Refusal {
  std::string part, value, code, says;
};

TEST(Tokenizer, NamesThePartThatItDoesNotKnow) {
  const Refusal refusals[] = {
      {"normalizer", R"({"type": "New"})", "part", "normalizer 'New'"},
      {"normalizer", R"({"type": 3})", "file", "normalizer.type"},
      {"normalizer", R"({"type": "Sequence", "normalizers":
          [{"type": "NFC"}, {"type": "Newer"}]})",
       "part", "normalizer.normalizers[1]"},
      {"normalizer", R"({"type": "Replace", "pattern": {"String": ""},
          "content": ""})",
       "part", "a pattern that is empty"},
      {"normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "?"})",
       "file", "character map"},
      {"pre_tokenizer", R"({"type": "UnicodeScripts"})", "part",
       "'UnicodeScripts'"},
      {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})", "file",
       "one character"},
      {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "_",
          "prepend_scheme": "first", "add_prefix_space": false})",
       "file", "differ"},
      {"pre_tokenizer", R"({"type": "Punctuation", "behavior": "Gone"})",
       "part", "'Gone'"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "\\Xa"},
          "behavior": "Isolated"})",
       "part", "\\X"},
      {"post_processor", R"({"type": "New"})", "part", "'New'"},
      {"post_processor", R"({"type": "TemplateProcessing", "single": [],
          "special_tokens": {}})",
       "file", "no place for the text"},
      {"decoder", R"({"type": "CTC"})", "part", "decoder 'CTC'"},
      {"decoder",
       R"({"type": "Sequence", "decoders": [{"type": "ByteLevel"},
                                            {"type": "ByteFallback"}]})",
       "part", "a decoder after ByteLevel"},
      {"novelty", "{}", "part", "novelty"},
      {"model", "null", "file", "no \"model\""},
      {"added_tokens", R"([{"id": 300, "content": "x<"}])", "part",
       "whose id is not 256"},
      {"added_tokens", R"([{"id": -1, "content": "x<"}])", "file",
       "added_tokens[0].id"},
      {"added_tokens", R"([{"id": 256}])", "file", "added_tokens[0].content"},
      {"added_tokens", R"({})", "file", "expected a list"},
  };
  for (const Refusal& refusal : refusals) {
    TokenizerFile file;
    file.set(refusal.part, refusal.value);
    std::string code;
    EXPECT_THAT(failure(file.text(), code), HasSubstr(refusal.says));
    EXPECT_EQ(code, "tokenizer." + refusal.code) << refusal.value;
  }
}

TEST(Tokenizer, NamesThePartOfTheModelThatItDoesNotKnow) {
  const Refusal refusals[] = {
      {"type", R"("New")", "part", "the model 'New'"},
      {"type", R"("Unigram")", "file", "expected a list"},
      {"dropout", "0.1", "part", "dropout"},
      {"dropout", R"("x")", "file", "model.dropout"},
      {"continuing_subword_prefix", "7", "file", "expected a text"},
      {"ignore_merges", "3", "file", "true or false"},
      {"vocab", "[]", "file", "expected an object"},
      {"vocab", R"({"a": "b"})", "file", "model.vocab.a"},
      {"vocab", R"({"a": 3000000})", "size", "at most 2097151"},
      {"merges", R"(["a b c"])", "file", "one space"},
      {"merges", R"(["a b"])", "file", "'ab' of this merge"},
      {"merges", R"([["a"]])", "file", "a list of two tokens"},
      {"merges", R"([7])", "file", "model.merges[0]"},
  };
  for (const Refusal& refusal : refusals) {
    TokenizerFile file;
    file.set_model("unk_token", R"("?")");
    file.set_model(refusal.part, refusal.value);
    std::string code;
    EXPECT_THAT(failure(file.text(), code), HasSubstr(refusal.says));
    EXPECT_EQ(code, "tokenizer." + refusal.code) << refusal.value;
  }
}

TEST(Tokenizer, RefusesATemplateThatAddsAnIdOfNoToken) {
  std::string code;
  EXPECT_THAT(failure(R"({"version": "1.0", "model": {"type": "WordLevel",
      "vocab": {"a": 0, "?": 1}, "unk_token": "?"}, "post_processor": {
      "type": "BertProcessing", "sep": ["s", 999999], "cls": ["?", 1]}})",
                      code),
              HasSubstr("the id 999999, which no token has"));
  EXPECT_EQ(code, "tokenizer.file");
}

TEST(Tokenizer, SaysWhatIsNoTokenizerFile) {
  for (std::string text : {"", "[]", "{", "{}", "nonsense"}) {
    std::string code;
    EXPECT_THAT(failure(text, code), HasSubstr("t.json"));
    EXPECT_EQ(code, "tokenizer.file") << text;
  }
}

TEST(Tokenizer, RefusesMoreMergesThanItCanKeep) {
  TokenizerFile file;
  file.json["model"]["merges"] = Json::Array((1u << 22) + 1, Json("a b"));
  std::string code;
  EXPECT_THAT(failure(file.text(), code), HasSubstr("4194305 merges"));
  EXPECT_EQ(code, "tokenizer.size");
}

}  // namespace
}  // namespace penstock
