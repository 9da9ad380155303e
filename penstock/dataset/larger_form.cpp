#include "penstock/dataset/larger_form.h"

#include <utility>

#include "penstock/base/json_path.h"
#include "penstock/cache/cache.h"

namespace penstock {
namespace {

/// `settings` with some more members of the object `key`.
Json with(const Json& settings, const std::string& key, const Json& members) {
  Json all = settings;
  for (const auto& [name, value] : members.object()) all[key][name] = value;
  return all;
}

/// Settings that the schema of a field's kind marks "larger".
struct Marked {
  std::string kind, key;
  Json settings, made;  // as they are, and with these
  const Json* larger;
  const Json* differs;  // settings with which it makes other bytes, or null
};

/// Of all kinds. It is large, and asked for several times for each field.
const Json& known_schema() {
  static const Json schema = fields_schema();
  return schema;
}

std::optional<Marked> marked(const Field& field) {
  const Json recipe = field.kind->facts().recipe;
  if (!recipe.is_object()) return std::nullopt;
  for (const auto& [kind, settings] : recipe.object()) {
    const Json* rules =
        found_in(known_schema(),
                 {"additionalProperties", "properties", kind, "properties"});
    if (rules == nullptr || !settings.is_object()) continue;
    for (const auto& [key, rule] : rules->object())
      if (const Json* larger = rule.find("larger"))
        return Marked{.kind = kind,
                      .key = key,
                      .settings = settings,
                      .made = with(settings, key, *larger),
                      .larger = larger,
                      .differs = rule.find("larger_differs")};
  }
  return std::nullopt;
}

bool makes_same_bytes(const Marked& of) {
  if (of.differs == nullptr) return true;
  for (const auto& [key, value] : of.differs->object())
    if (const Json* found = of.settings.find(key); found && *found == value)
      return false;
  return true;
}

}  // namespace

std::optional<LargerForm> larger_form(const Field& field) try {
  if (field.kind->facts().wants_device)
    return std::nullopt;  // of a form of its own
  const std::optional<Marked> of = marked(field);
  if (!of || of->made == of->settings) return std::nullopt;
  Json fields;
  fields[field.name][of->kind] = of->made;
  return LargerForm{.field = parse_fields(fields, "fields")[0],
                    .setting = "\"" + of->key + "\": " + of->larger->dump(),
                    .same_bytes = makes_same_bytes(*of)};
} catch (const Error&) {
  return std::nullopt;  // other settings exclude it
}

std::string finishing_note(std::size_t bytes, int threads) {
  return shown_bytes(bytes) + " of the host are for " +
         std::to_string(threads) +
         " threads that finish rows as large as the largest of these";
}

bool has_larger_form(const Field& field) {
  const std::optional<Marked> of = marked(field);
  return of && of->made == of->settings;
}

}  // namespace penstock
