#include "penstock/models/set_position/descriptor.h"

#include <algorithm>
#include <limits>

namespace penstock {
namespace {

const SettingsTable<SetPosition>& set_position_settings() {
  static const SettingsTable<SetPosition> table =
      SettingsTable<SetPosition>()
          .text("set", &SetPosition::set,
                "Field of kind json_set that holds the receivers")
          .required()
          .text("target", &SetPosition::target,
                "Field of two columns: latitude and longitude in degrees")
          .required()
          .text("latitude", &SetPosition::latitude,
                "Key of the set with the receiver's value, in degrees")
          .required()
          .text("longitude", &SetPosition::longitude,
                "Key of the set with the receiver's value, in degrees")
          .required()
          .text("strength", &SetPosition::strength,
                "Key of the set with the receiver's value, in dB")
          .required()
          .integer("width", &SetPosition::width, 8, 4096,
                   "Width of the hidden layers")
          .multiple_of(8)
          .number(
              "dropout", &SetPosition::dropout, 0, 0.9,
              "Share of receivers that are left out at random during training")
          .number("noise_db", &SetPosition::noise_db, 0, 100,
                  "Standard deviation of the noise that is added to strengths "
                  "during training, in dB")
          .integer("seed", &SetPosition::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "Seed of the initial weights and of random numbers during "
                   "training");
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
    spec.refuse("target", "field '" + name + "' does not have two columns",
                "name a field with the columns of latitude and longitude");
  if (numbers->dtype == Dtype::int64)
    spec.refuse("target", "field '" + name + "' holds whole numbers",
                "leave out its \"dtype\", or set it to float64");
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
  return {.name = "set_position",
          .about =
              "Predicts a position and its uncertainty from a set of receivers",
          .settings =
              with_shared(SettingsTable<ModelSpec>({.kind = "set_position"})
                              .own(&ModelSpec::own, set_position_settings())),
          .check = check_fields,
          .switches = {"precision", "tf32", "graphs", "accumulate", "ema"},
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
