#include "penstock/job/model.h"

#include <algorithm>
#include <cmath>

#include "penstock/trainer/models/kinds.h"

namespace penstock {

#define KIND(name) ModelKind name##_model();
PENSTOCK_MODEL_KINDS(KIND)
#undef KIND

const std::vector<ModelKind>& model_kinds() {
#define KIND(name) name##_model(),
  static const std::vector<ModelKind> kinds = {PENSTOCK_MODEL_KINDS(KIND)};
#undef KIND
  return kinds;
}

namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;

const ModelKind& kind_named(const std::string& name) {
  return *std::ranges::find(model_kinds(), name, &ModelKind::name);
}

}  // namespace

const SettingsTable<Learning>& learning_settings() {
  static const SettingsTable<Learning> table =
      SettingsTable<Learning>()
          .number("lr", &Learning::lr, 0, 1000, "the peak, after the warm-up")
          .integer("warmup_steps", &Learning::warmup_steps, 0, kMany, "")
          .number("weight_decay", &Learning::weight_decay, 0, 1000, "")
          .number("clip_norm", &Learning::clip_norm, 0, 1e9,
                  "of all gradients together; 0: no clipping")
          .integer("threads", &Learning::threads, 0, 1024,
                   "of the model's mathematics; 0: all that we may use");
  return table;
}

const Field& field_named(const Spec& section, std::string_view key,
                         const std::string& name,
                         const std::vector<Field>& fields) {
  auto found = std::ranges::find(fields, name, &Field::name);
  if (found != fields.end()) return *found;
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  section.refuse(key, "there is no field '" + name + "'",
                 did_you_mean(name, names));
}

ModelSpec parse_model(const Json* section, const std::vector<Field>& fields) {
  if (section == nullptr) return {};
  if (section->is_string()) {
    if (section->string() == "none") return {};
    throw Error(ErrorKind::request,
                {.code = "settings.value",
                 .what = "cannot use a setting",
                 .where = "model",
                 .why = "found \"" + section->string() +
                        "\", expected \"none\" or an object",
                 .next = "for example {\"kind\": \"" + model_kinds()[0].name +
                         "\", \"" + model_kinds()[0].settings.schemas()[0].key +
                         "\": ...}"});
  }
  Spec spec(*section, "model");
  std::vector<std::string> names;
  for (const ModelKind& kind : model_kinds()) names.push_back(kind.name);
  const ModelKind& kind = kind_named(spec.choice("kind", names));
  ModelSpec model = kind.settings.defaults();
  kind.settings.read(spec, model);
  kind.check(spec, model, fields);
  spec.finish();
  return model;
}

Json model_section(const ModelSpec& model) {
  if (model.none()) return "none";
  Json section;
  section["kind"] = model.kind;
  kind_named(model.kind).settings.show(model, section);
  return section;
}

Json model_schema() {
  Json none;
  none["const"] = "none";
  Json schema;
  schema["description"] = "none: the device alone takes the steps.";
  schema["oneOf"].push_back(std::move(none));
  for (const ModelKind& kind : model_kinds()) {
    SettingSchema name{.key = "kind", .required = true};
    name.rule["const"] = kind.name;
    name.rule["description"] = kind.about;
    std::vector<SettingSchema> settings = kind.settings.schemas();
    settings.insert(settings.begin(), std::move(name));
    schema["oneOf"].push_back(object_schema(settings));
  }
  return schema;
}

int threads_of(const ModelSpec& model) {
  if (model.learning.threads > 0) return model.learning.threads;
  return std::max(1, static_cast<int>(std::floor(read_host_limits().cpus)));
}

}  // namespace penstock
