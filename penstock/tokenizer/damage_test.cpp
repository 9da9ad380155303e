// A tokenizer.json that was damaged is refused, or gives a tokenizer.
#include "penstock/base/fake/damage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {
namespace {

/// The files of all kinds that the golden ids were made with.
std::vector<std::string> good_files() {
  const std::filesystem::path folder =
      std::filesystem::path(PENSTOCK_TEST_DATA).parent_path() /
      "golden/tokenizers";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    files.push_back(Json::parse(text, "golden").find("tokenizer")->dump());
  }
  std::ranges::sort(files);
  return files;
}

/// Puts another value in place of one: the JSON stays JSON more often than not.
std::string with_other_value(std::string json, std::mt19937_64& random) {
  static const char* const kOthers[] = {
      "null",      "true",          "-1",
      "0",         "1e308",         "4294967296",
      "\"\"",      "\"\\n\"",       "[]",
      "{}",        "[[0]]",         "{\"type\": \"BPE\"}",
      "0.5",       "\"x\"",         "\"▁\"",
      "\"(a*)*\"", "\"\\\\p{L}+\"", "[\"a\", \"b\"]"};
  const std::size_t begin = json.find_first_of(":,[", random() % json.size());
  if (begin == json.npos) return json;
  const std::size_t end = json.find_first_of(",]}", begin + 1);
  if (end == json.npos) return json;
  return json.replace(begin + 1, end - begin - 1,
                      kOthers[random() % std::size(kOthers)]);
}

TEST(TokenizerDamage, ADamagedFileIsRefusedOrGivesATokenizer) {
  const std::vector<std::string> files = good_files();
  ASSERT_GT(files.size(), 10u);
  const std::string text = "The größte  file, 日本語\n12'll <unk>x\xff e\u0301";
  std::mt19937_64 random(17);
  const int times = damages(600);
  int refused = 0;
  for (int time = 0; time < times; ++time) {
    std::string json = files[random() % files.size()];
    if (time % 2 == 0)
      json = damaged(json, random);
    else
      for (auto blows = 1 + random() % 3; blows > 0; --blows)
        json = with_other_value(std::move(json), random);
    SCOPED_TRACE("damage " + std::to_string(time));
    try {
      auto tokenizer = Tokenizer::parse(json, "damaged.json");
      std::vector<std::uint32_t> ids;
      std::vector<TokenOffsets> offsets;
      Encoder encoder(tokenizer);
      encoder.encode(text, true, ids);
      tokenizer->decode(ids, false);
      ids.clear();
      encoder.encode(text, false, ids, offsets);
      ASSERT_EQ(ids.size(), offsets.size());
    } catch (const Error& error) {
      ++refused;
      ASSERT_NE(error.kind(), ErrorKind::internal) << error.what();
      ASSERT_FALSE(error.parts().why.empty());
    }
  }
  std::cout << refused << " of " << times << " damaged files were refused\n";
  EXPECT_GT(refused, times / 4);
}

}  // namespace
}  // namespace penstock
