#pragma once

#include <optional>
#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// A value that the rule of a setting (a JSON Schema) allows and that differs
/// from `value`; null if none can be made up from the rule
/// alone.
inline Json other_value(const Json& rule, const Json& value) {
  if (const Json* options = rule.find("enum")) {
    for (const Json& option : options->array())
      if (option != value) return option;
    return {};
  }
  if (const Json* options = rule.find("anyOf")) {
    for (const Json& option : options->array())
      if (Json other = other_value(option, value); !other.is_null())
        return other;
    return {};
  }
  const Json* type = rule.find("type");
  if (type == nullptr || !type->is_string()) return {};
  auto limit = [&](const char* key) {
    const Json* found = rule.find(key);
    return found == nullptr ? std::optional<double>()
                            : std::optional(found->number());
  };
  if (type->string() == "boolean") return Json(value != Json(true));
  if (type->string() == "integer" || type->string() == "number") {
    const double now = value.is_number() ? value.number() : 0;
    const double least = limit("minimum").value_or(now);
    double other = now > least ? least : least + 1;
    if (limit("maximum") && other > *limit("maximum"))
      other = *limit("maximum");
    return type->string() == "integer" ? Json(static_cast<std::int64_t>(other))
                                       : Json(other);
  }
  if (type->string() == "string")
    return value == Json("b") ? Json("c") : Json("b");
  if (type->string() != "array" || rule.find("items") == nullptr) return {};
  Json item = other_value(*rule.find("items"), Json());
  if (item.is_null()) return {};
  return Json(Json::Array{std::move(item)});
}

}  // namespace penstock
