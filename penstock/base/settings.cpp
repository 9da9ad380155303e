#include "penstock/base/settings.h"

namespace penstock::settings {

std::string read_text(Spec& spec, const SettingSchema& setting,
                      const std::string& otherwise) {
  if (spec.raw(setting.key) == nullptr && !setting.required) return otherwise;
  std::string text = spec.text(setting.key);
  if (text.empty() && setting.rule.find("minLength") != nullptr)
    spec.refuse(setting.key, "the text is empty", "write a name");
  return text;
}

std::int64_t read_integer(Spec& spec, const SettingSchema& setting,
                          std::int64_t otherwise, std::int64_t min,
                          std::int64_t max) {
  std::int64_t value = spec.integer(
      setting.key, setting.required ? std::nullopt : std::optional(otherwise),
      min, max);
  const Json* step = setting.rule.find("multipleOf");
  if (step != nullptr && value % step->integer() != 0)
    spec.refuse(
        setting.key,
        "found " + std::to_string(value) + ", expected a multiple of " +
            std::to_string(step->integer()),
        "write " + std::to_string(value / step->integer() * step->integer()));
  return value;
}

}  // namespace penstock::settings
