#include "penstock/trainer/target.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <numeric>

namespace penstock {
namespace {

[[noreturn]] void refuse_one_class(const Field& field, const Json& classes) {
  std::string why = "the train rows have no classes in field '";
  if (!classes.array().empty())
    why = "the train rows have only one class, " + classes.array()[0].dump() +
          ", in field '";
  throw Error(ErrorKind::request,
              {.code = "model.one_class",
               .what = "cannot learn to distinguish classes",
               .where = "model",
               .why = why + field.name + "', expected two or more",
               .next = "check the column, \"source.where\" and the category's "
                       "\"min_count\""});
}

}  // namespace

bool has_labels(const Field& field) {
  const std::optional<ClassFacts>& classes = field.kind->facts().classes;
  return classes && classes->many;
}

std::optional<Classes> classes_of(const FittedFields& data,
                                  const Field& field) {
  const FieldFacts& facts = field.kind->facts();
  if (!facts.one_class()) return std::nullopt;
  return Classes{
      std::ssize(data.statistics_of(field.name).find("classes")->array()),
      facts.classes->unknown};
}

const Field& target_field(const std::string& name, const FittedFields& data) {
  auto found = std::ranges::find(data.fields, name, &Field::name);
  if (found != data.fields.end()) return *found;
  std::vector<std::string> names;
  for (const Field& field : data.fields) names.push_back(field.name);
  throw Error(ErrorKind::request, {.code = "model.no_field",
                                   .what = "cannot make the model",
                                   .where = "model",
                                   .why = "there is no field '" + name + "'",
                                   .next = did_you_mean(name, names)});
}

Target target_of_classes(const Field& field, const Classes& classes,
                         const FittedFields& data) {
  if (classes.count < 2)
    refuse_one_class(field, *data.statistics_of(field.name).find("classes"));
  Target target{
      .name = field.name, .classes = classes.count, .unknown = classes.unknown};
  const Json* counts = data.statistics_of(field.name).find("counts");
  if (counts != nullptr)
    for (const Json& count : counts->array())
      target.constant.counts.push_back(count.integer());
  return target;
}

// n / (k n_c) for class c with n_c of n rows, where k classes occur: each class
// then has the same weight in all, and a row has the weight 1 on average.
std::vector<float> balanced_weights(std::span<const std::int64_t> counts) {
  const auto rows = static_cast<double>(
      std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  const auto classes = static_cast<double>(std::ranges::count_if(
      counts, [](std::int64_t count) { return count > 0; }));
  std::vector<float> weights;
  for (std::int64_t count : counts)
    weights.push_back(count == 0
                          ? 1
                          : static_cast<float>(
                                rows / (classes * static_cast<double>(count))));
  return weights;
}

// (n - n_c) / n_c for a label that n_c of n rows have: what has it and what
// does not weigh the same.
std::vector<float> balanced_label_weights(std::span<const std::int64_t> counts,
                                          std::int64_t rows) {
  std::vector<float> weights;
  for (std::int64_t count : counts)
    weights.push_back(
        count == 0 || count >= rows
            ? 1
            : static_cast<float>(static_cast<double>(rows - count) /
                                 static_cast<double>(count)));
  return weights;
}

Target target_of_classifier(const std::string& name, const FittedFields& data,
                            bool balanced) {
  const Field& field = target_field(name, data);
  const Json& statistics = data.statistics_of(field.name);
  const bool many = has_labels(field);
  Target target;
  if (many) {
    target = {.name = field.name,
              .classes = std::ssize(statistics.find("classes")->array()),
              .many = true};
    if (target.classes == 0)
      refuse_one_class(field, *statistics.find("classes"));
  } else {
    const std::optional<Classes> classes = classes_of(data, field);
    PENSTOCK_ASSERT(classes.has_value(),
                    "the job's check found classes in the target");
    target = target_of_classes(field, *classes, data);
  }
  if (!balanced) return target;
  std::vector<std::int64_t> counts;
  for (const Json& count : statistics.find("counts")->array())
    counts.push_back(count.integer());
  target.class_weights =
      many ? balanced_label_weights(counts, statistics.find("rows")->integer())
           : balanced_weights(counts);
  return target;
}

AnswerFacts answers_about_classes(const Target& target, const Field& field,
                                  const Json& statistics) {
  AnswerFacts facts{
      .of = target.many ? AnswerFacts::Of::labels : AnswerFacts::Of::one_class,
      .names = class_names(field, statistics)};
  facts.names.resize(static_cast<std::size_t>(target.classes));
  return facts;
}

Truth truth_of(const BatchRows& batch, const Target& target) {
  const std::int64_t rows = batch.rows();
  at::Tensor weight = weights_of(batch);
  // Places behind the labels that there are hold none.
  if (target.many)
    return {tensor_of(batch, target.name)
                .to(at::kFloat)
                .narrow(1, 0, target.classes),
            weight};
  at::Tensor value = tensor_of(batch, target.name).reshape({rows});
  if (target.masked)
    weight = weight * tensor_of(batch, target.name + "_mask").reshape({rows});
  if (target.classes == 0) return {value.to(at::kFloat), weight};
  value = value.to(at::kLong);
  if (target.unknown) weight = weight * value.lt(target.classes);
  return {value.clamp(0, target.classes - 1), weight};
}

// With label smoothing e (Szegedy et al. 2016), (1 - e) (-log p_y) + e times
// the mean of -log p over all classes; with class weights each -log p_c is
// multiplied by its own, as torch.nn.CrossEntropyLoss has it.
at::Tensor class_losses(const at::Tensor& answers, const at::Tensor& truth,
                        double smoothing, const at::Tensor& weights) {
  at::Tensor likely = answers.log_softmax(1);
  if (weights.defined()) likely = likely * weights;
  at::Tensor of_truth = likely.gather(1, truth.unsqueeze(1)).select(1, 0);
  if (smoothing == 0) return of_truth * -1;
  return of_truth * (smoothing - 1) - likely.mean(1) * smoothing;
}

}  // namespace penstock
