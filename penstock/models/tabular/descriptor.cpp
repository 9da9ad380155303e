#include "penstock/models/tabular/descriptor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "penstock/models/class_target.h"

namespace penstock {
namespace {

constexpr std::int64_t kWidestEmbedding = 64;

const SettingsTable<Tabular>& tabular_settings() {
  using Task = Tabular::Task;
  static const SettingsTable<Tabular> table =
      SettingsTable<Tabular>()
          .text("target", &Tabular::target,
                "Field to predict: a category, or one number")
          .required()
          .texts("inputs", &Tabular::inputs,
                 "Fields that the model sees. Default: all but the target")
          .choice("task", &Tabular::task,
                  {{"auto", Task::by_target},
                   {"regression", Task::regression},
                   {"classification", Task::classification}},
                  "What is predicted. auto: classification for a category or a "
                  "column of dtype bool, else regression")
          .integer("width", &Tabular::width, 8, 4096, "Width of all layers")
          .multiple_of(8)
          .integer("depth", &Tabular::depth, 0, 64, "Number of residual blocks")
          .number(
              "dropout", &Tabular::dropout, 0, 0.9,
              "Share of a block's activations that are dropped during training")
          .integer("seed", &Tabular::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "Seed of the initial weights and of the dropout");
  return table;
}

bool keeps_nan(const Field& field) {
  const std::optional<NumberFacts>& numbers = field.kind->facts().numbers;
  return numbers && numbers->missing == MissingValue::By::nan;
}

void check_input(const Spec& spec, const Field& field) {
  for (const Output& output : field.kind->facts().outputs)
    if (output.lengths != Lengths::equal || output.row_shape.size() > 1)
      spec.refuse("inputs",
                  "field '" + field.name +
                      "' is neither a category nor a row of numbers",
                  "name the inputs without this field, or leave the field out");
  if (keeps_nan(field))
    spec.refuse("inputs",
                "missing values of field '" + field.name +
                    "' are NaN, which would make the whole model NaN",
                "set its \"missing\" to \"mask\" or \"mean\"");
}

void check_inputs(const Spec& spec, const Tabular& settings,
                  const std::vector<Field>& fields) {
  std::set<std::string> seen;
  for (const std::string& name : settings.inputs) {
    field_named(spec, "inputs", name, fields);
    if (name == settings.target)
      spec.refuse("inputs", "field '" + name + "' is the target",
                  "leave the target out of the inputs");
    if (!seen.insert(name).second)
      spec.refuse("inputs", "field '" + name + "' appears twice",
                  "name the field once");
  }
  const std::vector<Field> inputs = inputs_of(settings, fields);
  if (inputs.empty())
    spec.refuse("inputs", "the target is the only field",
                "add the fields to predict it from");
  for (const Field& field : inputs) check_input(spec, field);
}

void check_number(const Spec& spec, const NumberFacts& target,
                  const std::string& name, bool classes) {
  if (target.columns.size() != 1)
    spec.refuse("target",
                "field '" + name + "' holds " +
                    std::to_string(target.columns.size()) +
                    " columns, expected one number",
                "name a field of one column");
  if (target.missing == MissingValue::By::nan)
    spec.refuse("target",
                "missing values of field '" + name +
                    "' are NaN, and no prediction can be compared with NaN",
                "set its \"missing\" to \"mask\": such rows are then ignored");
  if (target.bucketized || target.quantiles)
    spec.refuse("target",
                "field '" + name + "' holds " +
                    (target.bucketized ? "buckets" : "quantiles") +
                    ", but errors are measured in the unit of the column",
                "use \"standardize\", \"min_max\" or \"log1p\" instead");
  if (classes && target.dtype != Dtype::boolean)
    spec.refuse("task",
                "found \"classification\", but field '" + name +
                    "' holds numbers, expected a category or dtype \"bool\"",
                "make the target a \"category\" field, or use \"regression\"");
}

void check_fields(const Spec& spec, const ModelSpec& model,
                  const std::vector<Field>& fields) {
  const Tabular& settings = tabular_of(model);
  const Field& target = field_named(spec, "target", settings.target, fields);
  check_not_one_hot(spec, target);
  const FieldFacts& facts = target.kind->facts();
  if (facts.numbers)
    check_number(spec, *facts.numbers, target.name,
                 classifies(settings, target));
  else if (!facts.one_class())
    spec.refuse(
        "target",
        "field '" + target.name + "' is neither a category nor a number",
        "name a \"category\" or a \"column\" field");
  else if (settings.task == Tabular::Task::regression)
    spec.refuse(
        "task",
        "found \"regression\", but field '" + target.name + "' is a category",
        "make the target a \"column\" field, or leave out \"task\"");
  check_inputs(spec, settings, fields);
}

std::vector<std::string> metrics_of_target(const ModelSpec& model,
                                           const std::vector<Field>& fields) {
  const Tabular& settings = tabular_of(model);
  const Field& target =
      *std::ranges::find(fields, settings.target, &Field::name);
  if (classifies(settings, target)) return class_metric_names(target, false);
  return {"loss", "rmse", "mae"};
}

}  // namespace

ModelKind tabular_model() {
  return {
      .name = "tabular",
      .about = "Predicts one field of a table from the others",
      .settings = with_shared(SettingsTable<ModelSpec>({.kind = "tabular"})
                                  .own(&ModelSpec::own, tabular_settings())),
      .check = check_fields,
      .switches = {"precision", "tf32", "graphs", "accumulate", "ema",
                   "label_smoothing"},
      .metrics = metrics_of_target};
}

const Tabular& tabular_of(const ModelSpec& model) {
  const Tabular* settings = std::any_cast<Tabular>(&model.own);
  PENSTOCK_ASSERT(settings != nullptr, "the model is a tabular");
  return *settings;
}

std::vector<Field> inputs_of(const Tabular& settings,
                             const std::vector<Field>& fields) {
  std::vector<Field> inputs;
  for (const Field& field : fields) {
    const bool named = settings.inputs.empty()
                           ? field.name != settings.target
                           : std::ranges::find(settings.inputs, field.name) !=
                                 settings.inputs.end();
    if (named) inputs.push_back(field);
  }
  return inputs;
}

bool classifies(const Tabular& settings, const Field& target) {
  if (settings.task != Tabular::Task::by_target)
    return settings.task == Tabular::Task::classification;
  const FieldFacts& facts = target.kind->facts();
  return facts.one_class() ||
         (facts.numbers && facts.numbers->dtype == Dtype::boolean);
}

std::int64_t embedding_width(std::int64_t classes) {
  const double twice = 2 * std::sqrt(static_cast<double>(classes));
  return std::min(kWidestEmbedding,
                  static_cast<std::int64_t>(std::ceil(twice)));
}

}  // namespace penstock
