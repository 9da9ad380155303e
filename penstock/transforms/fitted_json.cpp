#include <limits>

#include "penstock/base/spec.h"
#include "penstock/transforms/fit.h"

namespace penstock {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();

Standard read_standard(Spec spec, const std::string& name) {
  Standard standard{.name = name};
  standard.boolean = spec.boolean("boolean", false);
  standard.standardize = spec.boolean("standardize", false);
  standard.mean = spec.number("mean", {}, -kMost, kMost);
  standard.deviation = spec.number("deviation", {}, 0, kMost);
  standard.divisor = spec.number(
      "divisor", {}, std::numeric_limits<double>::denorm_min(), kMost);
  standard.count = spec.integer("count", {}, 0, INT64_MAX);
  standard.missing = spec.integer("missing", {}, 0, INT64_MAX);
  spec.finish();
  return standard;
}

}  // namespace

Json Fitted::json(const std::vector<Field>& fields_of_job) const {
  Json json(Json::Object{});
  for (std::size_t f = 0; f < fields.size(); ++f) {
    Json& of_field = json[fields_of_job[f].name];
    for (const Standard& standard : fields[f]) {
      Json& to = of_field[standard.name];
      to["boolean"] = standard.boolean;
      to["standardize"] = standard.standardize;
      to["mean"] = standard.mean;
      to["deviation"] = standard.deviation;
      to["divisor"] = standard.divisor;
      to["count"] = standard.count;
      to["missing"] = standard.missing;
    }
  }
  return json;
}

Fitted fitted_from_json(const Json& json, const std::vector<Field>& fields,
                        const std::string& path) {
  Fitted fitted;
  Spec spec(json, path);
  for (const Field& field : fields) {
    Spec of_field = spec.section(field.name);
    std::vector<Standard>& standards = fitted.fields.emplace_back();
    const std::vector<std::string>& names = field.json_set() != nullptr
                                                ? field.json_set()->keys
                                                : field.columns()->columns;
    for (const std::string& name : names)
      standards.push_back(read_standard(of_field.section(name), name));
    of_field.finish();
  }
  spec.finish();
  return fitted;
}

}  // namespace penstock
