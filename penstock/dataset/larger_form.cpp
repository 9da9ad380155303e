#include "penstock/dataset/larger_form.h"

#include <utility>

namespace penstock {
namespace {

/// The settings of a kind, with what each may be.
const Json* rules_of(const Json& schema, const std::string& kind) {
  const Json* at = &schema;
  for (const std::string& key :
       {std::string("additionalProperties"), std::string("properties"), kind,
        std::string("properties")}) {
    at = at->is_object() ? at->find(key) : nullptr;
    if (at == nullptr) return nullptr;
  }
  return at;
}

/// `settings` with some more members of the object `key`.
Json with(const Json& settings, const std::string& key, const Json& members) {
  Json all = settings;
  for (const auto& [name, value] : members.object()) all[key][name] = value;
  return all;
}

}  // namespace

std::optional<LargerForm> larger_form(const Field& field) try {
  if (field.kind->wants_device()) return std::nullopt;  // of a form of its own
  const Json schema = fields_schema();
  const Json recipe = field.kind->recipe();
  if (!recipe.is_object()) return std::nullopt;
  for (const auto& [kind, settings] : recipe.object()) {
    const Json* rules = rules_of(schema, kind);
    if (rules == nullptr || !settings.is_object()) continue;
    for (const auto& [key, rule] : rules->object()) {
      const Json* larger = rule.find("larger");
      if (larger == nullptr) continue;
      Json made = with(settings, key, *larger);
      if (made == settings) continue;
      Json fields;
      fields[field.name][kind] = std::move(made);
      return LargerForm{.field = parse_fields(fields, "fields")[0],
                        .setting = "\"" + key + "\": " + larger->dump()};
    }
  }
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;  // other settings exclude it
}

}  // namespace penstock
