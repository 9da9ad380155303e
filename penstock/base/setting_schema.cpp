#include "penstock/base/setting_schema.h"

#include <algorithm>
#include <limits>

namespace penstock {

Json object_schema(const std::vector<SettingSchema>& settings,
                   const Json& more) {
  Json schema;
  schema["type"] = "object";
  for (const auto& [word, value] : more.object()) schema[word] = value;
  Json::Array required;
  for (const SettingSchema& setting : settings)
    if (setting.required) required.push_back(setting.key);
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  Json& properties = schema["properties"];
  properties = Json(Json::Object{});
  for (const SettingSchema& setting : settings)
    properties[setting.key] = setting.rule;
  return schema;
}

namespace {

bool holds(const std::vector<SettingSchema>& settings, const std::string& key) {
  return std::ranges::find(settings, key, &SettingSchema::key) !=
         settings.end();
}

/// What a rule allows, whatever it says about it.
Json without_words(const Json& rule) {
  Json bare{Json::Object{}};
  for (const auto& [word, value] : rule.object())
    if (word != "description" && word != "default") bare[word] = value;
  return bare;
}

/// Whether all kinds that have this setting allow the same.
bool is_one_rule(const SettingSchema& setting,
                 const std::vector<KindSettings>& kinds) {
  for (const KindSettings& kind : kinds)
    for (const SettingSchema& other : kind.settings)
      if (other.key == setting.key &&
          without_words(other.rule) != without_words(setting.rule))
        return false;
  return true;
}

/// Every setting, once. What kinds differ about stands with each of them.
std::vector<SettingSchema> all_of(const std::vector<SettingSchema>& shared,
                                  const std::vector<KindSettings>& kinds) {
  std::vector<SettingSchema> all = shared;
  for (const KindSettings& kind : kinds)
    for (const SettingSchema& setting : kind.settings) {
      if (holds(all, setting.key)) continue;
      all.push_back(setting);
      all.back().required = false;
      if (!is_one_rule(setting, kinds)) all.back().rule = Json(Json::Object{});
    }
  return all;
}

/// "required" with these keys.
Json required(Json::Array keys) {
  Json rule;
  rule["required"] = std::move(keys);
  return rule;
}

/// The rule of one kind: what it needs, and that nothing else is there.
Json rule_of_kind(const KindSettings& kind,
                  const std::vector<SettingSchema>& shared,
                  const std::vector<SettingSchema>& all) {
  Json rule = kind.when;
  Json::Array needed, others;
  for (const SettingSchema& setting : kind.settings) {
    if (setting.required) needed.push_back(setting.key);
    auto found = std::ranges::find(all, setting.key, &SettingSchema::key);
    if (found->rule == Json(Json::Object{}))
      rule["properties"][setting.key] = setting.rule;
  }
  for (const SettingSchema& setting : all)
    if (!holds(shared, setting.key) && !holds(kind.settings, setting.key))
      others.push_back(required({setting.key}));
  if (!needed.empty()) rule["required"] = std::move(needed);
  if (others.size() == 1)
    rule["not"] = others[0];
  else if (!others.empty())
    rule["not"]["anyOf"] = std::move(others);
  return rule;
}

}  // namespace

Json schema_of_kinds(const std::vector<SettingSchema>& shared,
                     const std::vector<KindSettings>& kinds, const Json& more) {
  std::vector<SettingSchema> all = all_of(shared, kinds);
  Json rules = more;
  for (const KindSettings& kind : kinds)
    rules["oneOf"].push_back(rule_of_kind(kind, shared, all));
  return object_schema(all, rules);
}

namespace settings {
namespace {

Json described(Json rule, std::string about) {
  if (!about.empty()) rule["description"] = std::move(about);
  return rule;
}

}  // namespace

Json rule_of(std::string_view type, std::string about) {
  Json rule;
  rule["type"] = type;
  return described(std::move(rule), std::move(about));
}

Json list_rule(std::string about, bool not_empty) {
  Json rule = rule_of("array", std::move(about));
  if (not_empty) {
    rule["minItems"] = 1;
    rule["uniqueItems"] = true;
  }
  rule["items"]["type"] = "string";
  return rule;
}

// A limit that is only the type's own says nothing.
Json integer_rule(std::int64_t min, std::int64_t max, std::string about) {
  Json rule = rule_of("integer", std::move(about));
  rule["minimum"] = min;
  if (max != std::numeric_limits<std::int64_t>::max()) rule["maximum"] = max;
  return rule;
}

Json number_rule(double min, double max, std::string about) {
  Json rule = rule_of("number", std::move(about));
  rule["minimum"] = min;
  rule["maximum"] = max;
  return rule;
}

Json choice_rule(const std::vector<std::string>& names, std::string about) {
  Json rule;
  rule["enum"] = list_of(names);
  return described(std::move(rule), std::move(about));
}

Json list_of(const std::vector<std::string>& texts) {
  return Json(Json::Array(texts.begin(), texts.end()));
}

}  // namespace settings
}  // namespace penstock
