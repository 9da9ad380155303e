#include "penstock/job/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::string json(const std::string& yaml) {
  return parse_yaml(yaml, "settings.yaml").dump();
}

TEST(Yaml, ReadsWhatPeopleWriteSettingsIn) {
  EXPECT_EQ(json(R"(---
# of the run
training:
  bf16: true        # faster
  learning_rate: 1e-4
  epochs: 3
  optim: adamw_torch
  name: "a # b: \"c\""
  other: 'it''s'
  nothing:
  none: ~
stages:
- one
- size: 2
  names: [a, 'b, c', 3.5, {x: 1}]
-
  deep: yes
source: {kind: jsonl, path: "a b.jsonl"}
url: http://host:80/x
)"),
            Json::parse(R"({
  "training": {"bf16": true, "learning_rate": 1e-4, "epochs": 3,
               "optim": "adamw_torch", "name": "a # b: \"c\"", "other": "it's",
               "nothing": null, "none": null},
  "stages": ["one", {"size": 2, "names": ["a", "b, c", 3.5, {"x": 1}]},
             {"deep": true}],
  "source": {"kind": "jsonl", "path": "a b.jsonl"},
  "url": "http://host:80/x"})",
                        "expected")
                .dump());
  EXPECT_EQ(json(""), "{}");
  EXPECT_EQ(json("a: off\r\nb: +2\r\nc: .5\r\nd: 2x\r\n"),
            R"({"a": false, "b": 2, "c": 0.5, "d": "2x"})");
}

TEST(Yaml, RefusesByItsLineWhatItDoesNotRead) {
  for (const auto& [text, why] :
       std::vector<std::pair<const char*, const char*>>{
           {"a: &x 1", "anchor"},
           {"a: *x", "alias"},
           {"a: !!int 3", "tag"},
           {"a: |\n  text", "text blocks"},
           {"b: 1\na: 1\nb: 2", "'b' is given twice"},
           {"a: {b: 1, b: 2}", "'b' is given twice"},
           {"a: 1\n  b: 2", "indentation"},
           {"a: 1\nb", "expected \"key: value\""},
           {"\ta: 1", "tab"},
           {"a: [1, 2", "does not end"},
           {"a: [1 2}", "comma"},
           {"a: \"b", "does not end"},
           {"a: 1\n---\nb: 2", "second document"},
           {"<<: x", "merges"},
           {"a: \"\\xe9\"", ""}}) {
    try {
      json(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_THAT(error.what(), HasSubstr(why)) << text;
      EXPECT_THAT(error.what(), HasSubstr("settings.yaml:")) << text;
    }
  }
  std::string deep;
  for (int i = 0; i < 100; ++i)
    deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THROW(json(deep), Error);
  EXPECT_THROW(json("a: " + std::string(1000, '[')), Error);
}

TEST(Yaml, EndsWithADocumentOrAnErrorWhateverItIsGiven) {
  const std::string sample =
      "a: {b: [1, 'x'], \"c\": d}\n- e: f # g\nh:\n  - i: \"j\\n\"\n";
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = sample;
    for (int change = 0; change < 4; ++change)
      text[random() % text.size()] = random() % 3 == 0
                                         ? static_cast<char>(random() % 256)
                                         : "{}[]:,'\"#-\n &*"[random() % 14];
    try {
      json(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
    }
  }
}

}  // namespace
}  // namespace penstock
