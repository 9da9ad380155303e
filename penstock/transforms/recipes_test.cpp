#include <gtest/gtest.h>

#include <map>

#include "penstock/base/fake/other_value.h"
#include "penstock/transforms/kinds.h"

// A store is named by the recipes of its fields, so each setting of each kind
// must show in its recipe.

namespace penstock {
namespace {

/// A section of each kind that is accepted, and values of settings of which the
/// rule alone does not make up one that fits the others; null: it is left out.
struct Example {
  const char* section;
  std::map<std::string, std::string> values = {};
};

const std::map<std::string, Example>& examples() {
  static const std::map<std::string, Example> all = {
      {"columns",
       {R"({"columns": ["a"]})",
        {{"clip", "[0, 1]"},
         {"map", R"({"columns": ["a"]})"},
         {"bucketize", "[1, 2]"},
         {"missing", R"("nan")"}}}},
      {"json_set",
       {R"({"json_set": {"column": "a", "keys": ["k", "l"], "max": 3,
                         "overflow": "strongest", "sort_by": "k"}})",
        {{"json_set.keys", R"(["k"])"},
         {"json_set.overflow", "null"},  // any other one goes without sort_by
         {"json_set.sort_by", R"("l")"},
         {"json_set.required", R"(["k"])"}}}},
      {"category",
       {R"({"category": {"column": "a"}})",
        {{"category.unknown", R"("error")"}}}},
      {"text", {R"({"text": {"column": "a"}})"}},
      {"time",
       {R"({"time": {"column": "a"}})", {{"time.parts", R"(["hour"])"}}}},
      {"multi_hot", {R"({"multi_hot": {"column": "a", "size": 4}})"}},
      {"array",
       {R"({"array": {"column": "a", "shape": [2]}})",
        {{"array.shape", "[3]"},
         {"array.window", "null"},
         {"array.finite", "false"}}}},
      {"audio",
       {R"({"audio": {"column": "a", "rate": 8000, "seconds": 1}})",
        {{"audio.seconds", "2"}, {"audio.resample", R"("soxr")"}}}},
  };
  return all;
}

Json recipe_of(const FieldDescriptor& kind, const Json& section) {
  Spec spec(section, "fields.x");
  const std::shared_ptr<const FieldKind> made = kind.make("x", spec);
  spec.finish();
  return made->facts().recipe;
}

void check_settings(const FieldDescriptor& kind, const Example& example) {
  const Json plain = Json::parse(example.section, "example");
  const Json before = recipe_of(kind, plain);
  auto check = [&](const std::string& name, const Json& rule, auto put,
                   const Json& now) {
    const auto given = example.values.find(name);
    Json other = given != example.values.end()
                     ? Json::parse(given->second, name)
                     : other_value(rule, now);
    if (other.is_null()) return;  // an object: its members are looked at
    Json changed = plain;
    put(changed, std::move(other));
    EXPECT_NE(recipe_of(kind, changed), before)
        << name << " " << changed.dump();
  };
  for (const SettingSchema& setting : kind.settings()) {
    const Json* now = plain.find(setting.key);
    const Json* members = setting.rule.find("properties");
    if (members == nullptr || now == nullptr) {
      const Json* otherwise = setting.rule.find("default");
      check(
          setting.key, setting.rule,
          [&](Json& to, Json value) { to[setting.key] = std::move(value); },
          now != nullptr         ? *now
          : otherwise != nullptr ? *otherwise
                                 : Json());
      continue;
    }
    for (const auto& [key, rule] : members->object()) {
      const Json* inner = now->find(key);
      const Json* otherwise = rule.find("default");
      check(
          setting.key + "." + key, rule,
          [&, key = key](Json& to, Json value) {
            Json section = *to.find(setting.key);
            section[key] = std::move(value);
            to[setting.key] = std::move(section);
          },
          inner != nullptr       ? *inner
          : otherwise != nullptr ? *otherwise
                                 : Json());
    }
  }
}

TEST(Recipes, ShowEverySettingOfAField) {
  std::size_t checked = 0;
  for (const FieldDescriptor& kind : field_descriptors()) {
    const auto example = examples().find(kind.key);
    if (example == examples().end()) continue;
    SCOPED_TRACE(kind.key);
    // One kind after the other, so that all that are wrong are told.
    EXPECT_NO_THROW(check_settings(kind, example->second));
    ++checked;
  }
  EXPECT_EQ(checked, examples().size());
}

}  // namespace
}  // namespace penstock
