#include "penstock/models/class_target.h"

namespace penstock {

void check_not_one_hot(const Spec& section, const Field& target) {
  const std::optional<ClassFacts>& classes = target.kind->facts().classes;
  if (!classes || !classes->one_hot) return;
  section.refuse(
      "target",
      "field '" + target.name +
          "' is one_hot, but a target must be the number of a class",
      "leave \"one_hot\" out of that field; one-hot fields are for inputs");
}

void check_class_target(const Spec& section, const std::string& name,
                        const std::vector<Field>& fields) {
  const Field& field = field_named(section, "target", name, fields);
  if (!field.kind->facts().classes)
    section.refuse(
        "target",
        "field '" + name + "' is neither a category nor a multi_hot field",
        "name a \"category\" field, {\"category\": {\"column\": ...}}, or a "
        "\"multi_hot\" field for several labels");
  check_not_one_hot(section, field);
}

std::vector<std::string> class_switches() {
  return {"precision",     "tf32",
          "graphs",        "accumulate",
          "ema",           "label_smoothing",
          "class_weights", "gradient_checkpointing"};
}

std::vector<std::string> class_metric_names(const Field& target, bool balance) {
  const FieldFacts& facts = target.kind->facts();
  if (facts.classes && !facts.one_class())
    return {"loss", "exact_match", "micro_f1", "macro_f1", "map"};
  std::vector<std::string> names = {"loss", "accuracy", "auc", "macro_f1"};
  if (facts.classes) names.emplace_back("top5_accuracy");
  if (balance) {
    names.emplace_back("balanced_accuracy");
    names.emplace_back("least_recall");
  }
  return names;
}

}  // namespace penstock
