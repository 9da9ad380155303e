#include "penstock/models/auto_count.h"

#include <utility>

namespace penstock {

Json auto_count_rule(std::int64_t most, std::string about) {
  Json rule{Json::Object{}};
  rule["description"] = std::move(about);
  rule["oneOf"].push_back(settings::integer_rule(1, most, ""));
  rule["oneOf"].push_back(settings::choice_rule({"auto"}, ""));
  return rule;
}

std::optional<std::int64_t> read_auto_count(Spec& spec,
                                            const SettingSchema& setting,
                                            std::int64_t most) {
  const Json* given = spec.raw(setting.key);
  if (!given->is_string()) return spec.integer(setting.key, {}, 1, most);
  if (given->string() != "auto")
    spec.refuse(
        setting.key,
        "found " + given->dump() + R"(, expected a number of rows or "auto")",
        R"(write a number, or "auto")");
  return std::nullopt;
}

}  // namespace penstock
