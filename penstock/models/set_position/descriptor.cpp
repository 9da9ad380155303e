#include "penstock/models/set_position/descriptor.h"

#include <algorithm>
#include <limits>

namespace penstock {
namespace {

const SettingsTable<SetPosition>& set_position_settings() {
  static const SettingsTable<SetPosition> table =
      SettingsTable<SetPosition>()
          .text("set", &SetPosition::set, "a json_set field")
          .required()
          .text("target", &SetPosition::target,
                "a columns field: latitude, longitude in degrees")
          .required()
          .text("latitude", &SetPosition::latitude,
                "key of the set, in degrees")
          .required()
          .text("longitude", &SetPosition::longitude,
                "key of the set, in degrees")
          .required()
          .text("strength", &SetPosition::strength, "key of the set, in dB")
          .required()
          .integer("width", &SetPosition::width, 8, 4096, "")
          .multiple_of(8)
          .number("dropout", &SetPosition::dropout, 0, 0.9,
                  "share of receivers left out while learning")
          .number("noise_db", &SetPosition::noise_db, 0, 100,
                  "deviation of the noise added to strengths while learning")
          .integer("seed", &SetPosition::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "of the weights at the beginning, and of what is drawn "
                   "while learning");
  return table;
}

const SetFacts& set_of(const Spec& spec, const std::string& name,
                       const std::vector<Field>& fields) {
  const std::optional<SetFacts>& set =
      field_named(spec, "set", name, fields).kind->facts().set;
  if (!set)
    spec.refuse("set", "field '" + name + "' is not a json_set",
                "name the field that holds the receivers");
  if (set->least < 1)
    spec.refuse("set", "field '" + name + "' may be empty: its \"min\" is 0",
                "set \"min\" to at least 1: a position needs a receiver");
  return *set;
}

void check_target(const Spec& spec, const std::string& name,
                  const std::vector<Field>& fields) {
  const std::optional<NumberFacts>& numbers =
      field_named(spec, "target", name, fields).kind->facts().numbers;
  if (!numbers || numbers->columns.size() != 2)
    spec.refuse("target", "field '" + name + "' is not made of two columns",
                "name a field with the columns of latitude and longitude");
  if (numbers->dtype == Dtype::int64)
    spec.refuse("target", "field '" + name + "' holds whole numbers",
                "leave out its \"dtype\", or make it float64");
}

void check_fields(const Spec& spec, const ModelSpec& model,
                  const std::vector<Field>& fields) {
  const SetPosition& settings = set_position_of(model);
  const SetFacts& set = set_of(spec, settings.set, fields);
  check_target(spec, settings.target, fields);
  for (const auto& [key, name] : {std::pair("latitude", settings.latitude),
                                  std::pair("longitude", settings.longitude),
                                  std::pair("strength", settings.strength)})
    if (std::ranges::find(set.keys, name) == set.keys.end())
      spec.refuse(key, "the set has no key '" + name + "'",
                  did_you_mean(name, set.keys));
}

}  // namespace

ModelKind set_position_model() {
  return {
      .name = "set_position",
      .about = "where something is, and how surely, from a set of receivers",
      .settings =
          with_shared(SettingsTable<ModelSpec>({.kind = "set_position"})
                          .own(&ModelSpec::own, set_position_settings())),
      .check = check_fields,
      .switches = {"precision", "tf32", "accumulate", "ema"},
      .metrics = [](const ModelSpec&, const std::vector<Field>&) {
        return std::vector<std::string>{"loss", "median_km", "mean_km"};
      }};
}

const SetPosition& set_position_of(const ModelSpec& model) {
  const SetPosition* settings = std::any_cast<SetPosition>(&model.own);
  PENSTOCK_ASSERT(settings != nullptr, "the model is a set_position");
  return *settings;
}

}  // namespace penstock
