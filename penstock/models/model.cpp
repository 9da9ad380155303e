#include "penstock/models/model.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/shown.h"
#include "penstock/models/auto_count.h"
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

namespace {

/// The settings of how a network learns that not every one has.
SettingsTable<Learning>& add_network(SettingsTable<Learning>& table) {
  return table
      .choice("class_weights", &Learning::balanced_classes,
              {{"none", false}, {"balanced", true}},
              "Weight of the classes in the loss. none: all the same; "
              "balanced: inversely proportional to their train rows")
      .boolean("gradient_checkpointing", &Learning::gradient_checkpointing,
               "Whether to save memory by computing activations again "
               "during the backward pass")
      .choice("attention", &Learning::attention,
              {{"auto", Learning::Attention::by_device},
               {"mask", Learning::Attention::mask},
               {"documents", Learning::Attention::documents}},
              "How the documents of a row are kept apart. mask: by an "
              "attention mask; documents: one attention call per document; "
              "auto: documents on the cpu, else mask")
      .choice("strategy", &Learning::strategy,
              {{"auto", Learning::Strategy::by_default},
               {"ddp", Learning::Strategy::ddp},
               {"fsdp2", Learning::Strategy::fsdp2},
               {"deepspeed", Learning::Strategy::deepspeed}},
              "How several ranks train your own torch module. ddp: each rank "
              "has the whole module; fsdp2: weights, gradients and optimizer "
              "are sharded over the ranks; deepspeed: the optimizer is "
              "sharded (ZeRO stage 1); auto: ddp");
}

/// A built-in kind has all its weights on every rank.
void check_strategy(const ModelSpec& model) {
  const Learning::Strategy asked = model.learning.strategy;
  const bool sharded = asked == Learning::Strategy::fsdp2 ||
                       asked == Learning::Strategy::deepspeed;
  if (model.kind == "own" || !sharded) return;
  const std::string name =
      asked == Learning::Strategy::fsdp2 ? "fsdp2" : "deepspeed";
  throw Error(ErrorKind::request,
              {.code = "ranks.strategy",
               .what = "cannot train this model on several ranks so",
               .where = "train.strategy",
               .why = "found \"" + name +
                      "\", which shards a torch module of "
                      "your own, but the model is of the built-in kind \"" +
                      model.kind + "\"",
               .next = "leave train.strategy out: a built-in model adds its "
                       "gradients over the ranks; or train a torch module "
                       "with --model FILE.py:NAME"});
}

/// The settings of what a step does about its memory.
SettingsTable<Learning>& add_memory(SettingsTable<Learning>& table) {
  constexpr std::int64_t kMostRows = 1 << 24;
  return table
      .setting(
          "micro_batch",
          auto_count_rule(kMostRows,
                          "Rows of a batch that go through the model at once. "
                          "Their gradients are summed, and the weights change "
                          "once per batch. auto: as many as fit, found by "
                          "trials before the first step. Default: all rows"),
          [](Spec& spec, const SettingSchema& setting, Learning& to) {
            if (spec.raw(setting.key) == nullptr) return;
            to.micro_batch = read_auto_count(spec, setting, kMostRows);
            to.find_micro_batch = !to.micro_batch;
          },
          [](const Learning& from) {
            if (from.find_micro_batch) return Json("auto");
            return from.micro_batch ? Json(*from.micro_batch) : Json();
          })
      .integer("micro_batch_min", &Learning::micro_batch_min, 1, kMostRows,
               "Fewest rows to which a step that ran out of memory reduces "
               "micro_batch")
      .choice("oom", &Learning::oom,
              {{"guard", Learning::OnShortage::guard},
               {"exact", Learning::OnShortage::exact},
               {"stop", Learning::OnShortage::stop}},
              "What happens when a step runs out of memory. guard: it gives up "
              "cached rows and batches ahead, then runs the same batch in "
              "smaller micro-batches, then computes activations again; exact: "
              "the same, but the run "
              "ends where "
              "batch normalization would see fewer rows; stop: the run ends");
}

}  // namespace

const SettingsTable<Learning>& learning_settings() {
  static const SettingsTable<Learning> table = [] {
    SettingsTable<Learning> made =
        SettingsTable<Learning>()
            .number("lr", &Learning::lr, 0, 1000,
                    "Peak learning rate, reached at the end of the warm-up")
            .integer(
                "warmup_steps", &Learning::warmup_steps, 0, kMany,
                "Steps over which the learning rate rises from 0 to its peak. "
                "Default: 5 % of the run's steps, at most 50")
            .number("warmup_ratio", &Learning::warmup_ratio, 0, 1,
                    "Share of all steps over which the learning rate rises, in "
                    "place of warmup_steps. 0: unused")
            .choice(
                "schedule", &Learning::decay,
                {{"cosine", Learning::Decay::cosine},
                 {"linear", Learning::Decay::linear},
                 {"constant", Learning::Decay::constant}},
                "How the learning rate falls after the warm-up: along half a "
                "cosine, in a straight line, or not at all")
            .number("weight_decay", &Learning::weight_decay, 0, 1000,
                    "Weight decay of AdamW")
            .number("clip_norm", &Learning::clip_norm, 0, 1e9,
                    "Greatest norm of all gradients together: longer gradients "
                    "are scaled down to it. 0: no clipping")
            .integer(
                "threads", &Learning::threads, 0, 1024,
                "CPU threads for the model's computation. 0: all processors "
                "that this process may use")
            .choice("precision", &Learning::precision,
                    {{"float32", Dtype::float32},
                     {"bfloat16", Dtype::bfloat16},
                     {"float16", Dtype::float16}},
                    "Type that a network computes in. Its weights stay float32")
            .boolean("tf32", &Learning::tf32,
                     "Whether float32 products on a GPU may use TF32, which is "
                     "faster and less exact")
            .choice("graphs", &Learning::graphs,
                    {{"off", Learning::Graphs::off},
                     {"auto", Learning::Graphs::by_device}},
                    "Whether a GPU gets the kernels of a step in one call, as "
                    "a CUDA graph, with the same results. auto: on a GPU, for "
                    "up to 8 shapes of batches, where the model allows it")
            .integer("accumulate", &Learning::accumulate, 1, 1 << 20,
                     "Steps whose gradients are accumulated before the weights "
                     "change")
            .number("ema", &Learning::ema, 0, 0.999999,
                    "Decay of an exponential moving average of the weights, "
                    "which is then validated and saved. 0: no average")
            .number("label_smoothing", &Learning::label_smoothing, 0, 0.999999,
                    "Share of a target's probability that is spread over all "
                    "classes");
    return add_memory(add_network(made));
  }();
  return table;
}

SettingsTable<ModelSpec> with_shared(SettingsTable<ModelSpec> own) {
  return std::move(own.text(
      "path", &ModelSpec::path,
      "Safetensors file with the initial weights. Default: random weights"));
}

void check_switches(const Spec& train, const ModelSpec& model) {
  if (model.none()) return;  // nothing is learned
  const std::vector<std::string>& has = kind_named(model.kind).switches;
  std::string list;
  for (const std::string& key : has)
    list += (list.empty() ? "train." : ", train.") + key;
  for (const char* key :
       {"precision", "tf32", "graphs", "accumulate", "ema", "label_smoothing",
        "class_weights", "gradient_checkpointing", "attention"})
    if (train.has(key) && std::ranges::find(has, key) == has.end())
      train.refuse(key, "the model \"" + model.kind + "\" has no such setting",
                   "leave it out; this kind of model has " + list);
  check_strategy(model);
}

void check_metric(const Spec& train, const std::string& metric,
                  const ModelSpec& model, const std::vector<Field>& fields) {
  const std::vector<std::string> has =
      kind_named(model.kind).metrics(model, fields);
  if (std::ranges::find(has, metric) != has.end()) return;
  train.refuse(
      "metric",
      "the model \"" + model.kind + "\" has no metric \"" + metric + "\"",
      "name one of: " + listed(has));
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
    throw Error(
        ErrorKind::request,
        {.code = "settings.value",
         .what = "cannot use a setting",
         .where = "model",
         .why = "found \"" + section->string() +
                "\", expected \"none\" or an object",
         .next = "write, for example, {\"kind\": \"" + model_kinds()[0].name +
                 "\", \"" + model_kinds()[0].settings.schemas()[0].key +
                 "\": ...}"});
  }
  Spec spec(*section, "model");
  std::vector<std::string> names;
  for (const ModelKind& kind : model_kinds()) names.push_back(kind.name);
  const ModelKind& kind = kind_named(spec.choice("kind", names));
  if (spec.has("compile") && kind.name != "own")
    spec.refuse("compile",
                "torch.compile() compiles torch modules in Python, and the "
                "model \"" +
                    kind.name + "\" is built in",
                "leave it out; it applies to your own module, \"kind\": "
                "\"own\"");
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
  schema["description"] =
      "The model that is trained. none: batches are only read and delivered.";
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
  constexpr std::int64_t kMost = 50, kPart = 20;
  if (learning.warmup_ratio == 0)
    return learning.warmup_steps.value_or(std::min(kMost, steps / kPart));
  return static_cast<std::int64_t>(
      std::ceil(learning.warmup_ratio * static_cast<double>(steps)));
}

int threads_of(const ModelSpec& model) {
  if (model.learning.threads > 0) return model.learning.threads;
  return std::max(1, static_cast<int>(std::floor(read_cpu_limit())));
}

}  // namespace penstock
