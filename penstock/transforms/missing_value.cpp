#include "penstock/transforms/missing_value.h"

#include <limits>
#include <utility>

namespace penstock {
namespace {

using By = MissingValue::By;

constexpr std::pair<const char*, By> kNames[] = {
    {"mean", By::mean}, {"median", By::median}, {"zero", By::zero},
    {"nan", By::nan},   {"mask", By::mask},     {"empty", By::empty}};

const char* name_of(By by) {
  for (const auto& [name, named] : kNames)
    if (named == by) return name;
  return "";
}

}  // namespace

double MissingValue::value() const {
  return by == By::nan ? std::numeric_limits<double>::quiet_NaN() : fill;
}

Json missing_rule(const std::vector<By>& named,
                  const std::string& description) {
  Json names;
  names["enum"] = Json(Json::Array{});
  for (By by : named) names["enum"].push_back(name_of(by));
  Json number;
  number["type"] = "number";
  Json rule;
  rule["anyOf"] = Json(Json::Array{names, number});
  rule["description"] = description;
  return rule;
}

MissingValue read_missing(Spec& spec, const SettingSchema& setting,
                          const std::vector<By>& named) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return {};
  if (found->is_number()) return {.by = By::number, .fill = found->number()};
  std::string all;
  for (By by : named) {
    if (*found == Json(name_of(by))) return {.by = by};
    all += (all.empty() ? "\"" : ", \"") + std::string(name_of(by)) + "\"";
  }
  spec.refuse(setting.key, "found " + found->dump(),
              "use " + all + " or a number");
}

Json shown_missing(const MissingValue& missing) {
  if (missing.by == By::number) return Json(missing.fill);
  return missing.bad() ? Json() : Json(name_of(missing.by));
}

}  // namespace penstock
