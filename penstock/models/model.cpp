#include "penstock/models/model.h"

#include <algorithm>
#include <cmath>

#include "penstock/models/kinds.h"

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

const ModelKind& kind_named(const std::string& name) {
  return *std::ranges::find(model_kinds(), name, &ModelKind::name);
}

}  // namespace

const SettingsTable<Learning>& learning_settings() {
  static const SettingsTable<Learning> table =
      SettingsTable<Learning>()
          .number("lr", &Learning::lr, 0, 1000, "the peak, after the warm-up")
          .integer("warmup_steps", &Learning::warmup_steps, 0, kMany,
                   "the rate rises in a straight line")
          .number("warmup_ratio", &Learning::warmup_ratio, 0, 1,
                  "share of all steps, in place of warmup_steps; 0: unused")
          .choice("schedule", &Learning::decay,
                  {{"cosine", Learning::Decay::cosine},
                   {"linear", Learning::Decay::linear},
                   {"constant", Learning::Decay::constant}},
                  "how the rate falls after the warm-up: along half a cosine, "
                  "in a straight line, or not at all")
          .number("weight_decay", &Learning::weight_decay, 0, 1000, "")
          .number("clip_norm", &Learning::clip_norm, 0, 1e9,
                  "of all gradients together; 0: no clipping")
          .integer("threads", &Learning::threads, 0, 1024,
                   "of the model's mathematics; 0: all that we may use")
          .choice("precision", &Learning::precision,
                  {{"float32", Dtype::float32},
                   {"bfloat16", Dtype::bfloat16},
                   {"float16", Dtype::float16}},
                  "of a network's mathematics; its weights stay float32")
          .boolean("tf32", &Learning::tf32,
                   "faster products of float32 on a GPU, less exact")
          .integer("accumulate", &Learning::accumulate, 1, 1 << 20,
                   "steps whose gradients together move the weights")
          .number("ema", &Learning::ema, 0, 0.999999,
                  "decay of a moving average of the weights, which is what is "
                  "validated and left behind; 0: none")
          .number("label_smoothing", &Learning::label_smoothing, 0, 0.999999,
                  "share of a true class that is given to all classes")
          .choice("class_weights", &Learning::balanced_classes,
                  {{"none", false}, {"balanced", true}},
                  "balanced: a class counts the more, the fewer train rows "
                  "have it")
          .boolean("gradient_checkpointing", &Learning::gradient_checkpointing,
                   "less memory: what layers computed is computed again when "
                   "their gradients are")
          .choice("attention", &Learning::attention,
                  {{"auto", Learning::Attention::by_device},
                   {"mask", Learning::Attention::mask},
                   {"documents", Learning::Attention::documents}},
                  "how documents of a row are kept apart: by a mask, or each "
                  "by itself, on the cpu");
  return table;
}

SettingsTable<ModelSpec> with_shared(SettingsTable<ModelSpec> own) {
  return std::move(
      own.text("path", &ModelSpec::path,
               "a safetensors file of the first weights; default: they are "
               "drawn"));
}

void check_switches(const Spec& train, const ModelSpec& model) {
  if (model.none()) return;  // nothing is learned
  const std::vector<std::string>& has = kind_named(model.kind).switches;
  std::string list;
  for (const std::string& key : has)
    list += (list.empty() ? "train." : ", train.") + key;
  for (const char* key :
       {"precision", "tf32", "accumulate", "ema", "label_smoothing",
        "class_weights", "gradient_checkpointing", "attention"})
    if (train.has(key) && std::ranges::find(has, key) == has.end())
      train.refuse(key, "the model \"" + model.kind + "\" has no such setting",
                   "leave it out; of its kind the model has " + list);
}

bool reads_path(const ModelSpec& model) {
  return !model.none() && kind_named(model.kind).reads_path;
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

std::int64_t warmup_of(const Learning& learning, std::int64_t steps) {
  if (learning.warmup_ratio == 0) return learning.warmup_steps;
  return static_cast<std::int64_t>(
      std::ceil(learning.warmup_ratio * static_cast<double>(steps)));
}

int threads_of(const ModelSpec& model) {
  if (model.learning.threads > 0) return model.learning.threads;
  return std::max(1, static_cast<int>(std::floor(read_cpu_limit())));
}

}  // namespace penstock
