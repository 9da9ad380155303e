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

TEST(Yaml, ReadsBlocksOfTextAliasesAndMerges) {
  EXPECT_EQ(json("template: |\n  {{ a }}\n  # b\nfolded: >-\n  one\n  two\n"),
            R"({"template": "{{ a }}\n# b\n", "folded": "one two"})");
  EXPECT_EQ(json("base: &base {lr: 1, wd: 2}\n"
                 "run:\n  <<: *base\n  lr: 3\nlist: [*base, 'on']\n"),
            R"({"base": {"lr": 1, "wd": 2}, "run": {"lr": 3, "wd": 2}, )"
            R"("list": [{"lr": 1, "wd": 2}, "on"]})");
  EXPECT_EQ(json("a: \"\\xe9\"\nb: .inf\nc: [1,\n  2]\n"),
            "{\"a\": \"\xc3\xa9\", \"b\": \".inf\", \"c\": [1, 2]}");
}

TEST(Yaml, RefusesByItsLineWhatItDoesNotRead) {
  for (const auto& [text, why] :
       std::vector<std::pair<const char*, const char*>>{
           {"b: 1\na: *x", "settings.yaml:2: no anchor"},
           {"a: &x [*x]", "no anchor"},
           {"a: !!python/object:os.system 3", "tag"},
           {"b: 1\na: 1\nb: 2", "settings.yaml:3: the key 'b' is given twice"},
           {"a: {b: 1, b: 2}", "'b' is given twice"},
           {"a: 1\n  b: 2", "mapping values"},
           {"a: 1\nb", "':'"},
           {"\ta: 1", "cannot start any token"},
           {"a: [1, 2", "flow sequence"},
           {"a: [1 2}", "','"},
           {"a: \"b", "end of stream"},
           {"a: 1\n---\nb: 2", "second document"},
           {"<<: x", "'<<' needs a mapping"},
           {"? [a, b]\n: c", "key is not text"},
           {"a: b\nc: \xff\xfe", "settings.yaml:2"}}) {
    try {
      json(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_THAT(error.what(), HasSubstr(why)) << text;
      EXPECT_THAT(error.what(), HasSubstr("settings.yaml:")) << text;
    }
  }
}

TEST(Yaml, IsBoundedInDepthAndInWhatAliasesCopy) {
  std::string deep;
  for (int i = 0; i < 100; ++i)
    deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THROW(json(deep), Error);
  EXPECT_THROW(json("a: " + std::string(100'000, '[')), Error);
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int copy = 0; copy < 10; ++copy) laughs += before + ", ";
    laughs += "]\n";
  }
  try {
    json(laughs);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "manifest.yaml");
    EXPECT_THAT(error.what(), HasSubstr("100,000 values"));
  }
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
