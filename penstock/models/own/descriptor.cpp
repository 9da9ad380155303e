#include "penstock/models/own/descriptor.h"

#include <algorithm>
#include <limits>

#include "penstock/models/metric.h"

namespace penstock {
namespace {

void read_arguments(Spec& spec, const SettingSchema& setting, OwnModel& to) {
  const Json* given = spec.raw(setting.key);
  if (given == nullptr) return;
  if (!given->is_object())
    spec.refuse(setting.key, "found " + given->dump() + ", expected an object",
                "write the arguments by name: {\"width\": 64}");
  to.arguments = *given;
}

const SettingsTable<OwnModel>& own_settings() {
  static const SettingsTable<OwnModel> table =
      SettingsTable<OwnModel>()
          .text("class", &OwnModel::named,
                "File and name of a torch module: \"model.py:Net\"")
          .required()
          .text("target", &OwnModel::target,
                "Field that the module predicts. Default: the module returns "
                "its loss")
          .choice("loss", &OwnModel::loss,
                  {{"auto", "auto"},
                   {"cross_entropy", "cross_entropy"},
                   {"binary_cross_entropy", "binary_cross_entropy"},
                   {"mse", "mse"},
                   {"mae", "mae"},
                   {"huber", "huber"}},
                  "Loss of the prediction. auto: cross_entropy for a category, "
                  "binary_cross_entropy for a bool, else mse")
          .choice("compile", &OwnModel::compile,
                  {{"off", "off"},
                   {"default", "default"},
                   {"reduce-overhead", "reduce-overhead"}},
                  "Whether torch.compile() compiles the module, and in which "
                  "mode. It needs a C compiler")
          .setting(
              "arguments",
              settings::rule_of(
                  "object", "Arguments of the module's constructor, by name"),
              read_arguments,
              [](const OwnModel& from) { return from.arguments; })
          .integer("seed", &OwnModel::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "Seed of the initial weights and of random numbers during "
                   "training");
  return table;
}

void check_fields(const Spec& spec, const ModelSpec& model,
                  const std::vector<Field>& fields) {
  const OwnModel& settings = own_model_of(model);
  if (!settings.target.empty() && !fields.empty())
    field_named(spec, "target", settings.target, fields);
  if (settings.target.empty() && settings.loss != "auto")
    spec.refuse("loss",
                "the module returns its loss: \"target\" names no field",
                "name the field that the module predicts as \"target\", or "
                "leave \"loss\" out");
}

/// A module that gives its loss may give any number beside it.
std::vector<std::string> metrics_of_module(const ModelSpec& model,
                                           const std::vector<Field>& fields) {
  const OwnModel& settings = own_model_of(model);
  const auto target = std::ranges::find(fields, settings.target, &Field::name);
  if (target == fields.end()) {
    std::vector<std::string> any;
    for (const Metric& metric : all_metrics()) any.emplace_back(metric.name);
    return any;
  }
  const FieldFacts& facts = target->kind->facts();
  const bool classes =
      settings.loss == "auto"
          ? facts.classes ||
                (facts.numbers && facts.numbers->dtype == Dtype::boolean)
          : settings.loss.ends_with("cross_entropy");
  if (classes) return {"loss", "accuracy", "auc", "macro_f1"};
  return {"loss", "rmse", "mae"};
}

}  // namespace

ModelKind own_model() {
  return {.name = "own",
          .about = "Trains a torch module of your own, written in Python",
          .settings = with_shared(SettingsTable<ModelSpec>({.kind = "own"})
                                      .own(&ModelSpec::own, own_settings())),
          .check = check_fields,
          .switches = {"precision", "tf32", "graphs", "accumulate", "ema",
                       "label_smoothing"},
          .metrics = metrics_of_module};
}

const OwnModel& own_model_of(const ModelSpec& model) {
  const OwnModel* settings = std::any_cast<OwnModel>(&model.own);
  PENSTOCK_ASSERT(settings != nullptr, "the model is the user's own");
  return *settings;
}

}  // namespace penstock
