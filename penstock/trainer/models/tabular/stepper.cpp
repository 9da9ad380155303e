#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <optional>

#include "penstock/models/tabular/descriptor.h"
#include "penstock/trainer/autocast.h"
#include "penstock/trainer/model_stepper.h"
#include "penstock/trainer/models/tabular/network.h"
#include "penstock/trainer/outcome_details.h"
#include "penstock/trainer/outcomes.h"
#include "penstock/trainer/ranks/rank_share.h"
#include "penstock/trainer/target.h"
#include "penstock/trainer/trainer.h"

// A loss, from the batch: the classes of categories and the numbers of all
// other inputs are borrowed where they lie -> the network, of whose blocks some
// inner numbers are left out -> for each class how much it is preferred, and
// the cross entropy of the true one; or a number, and the square of what it is
// off. Rows without a truth weigh nothing.
namespace penstock {
namespace {

constexpr std::uint64_t kKept = 0x746162756c617200;  // last key of Random

/// A tensor of a batch that the model sees.
struct Input {
  std::string name;
  std::int64_t classes = 0;  ///< of a category; 0: it holds numbers
  std::int64_t numbers = 0;  ///< of a row
};

std::vector<Input> inputs_from(const Tabular& settings,
                               const FittedFields& data) {
  std::vector<Input> inputs;
  for (const Field& field : inputs_of(settings, data.fields)) {
    if (std::optional<Classes> classes = classes_of(data, field)) {
      inputs.push_back(
          {.name = field.name,
           .classes = classes->count + (classes->unknown ? 1 : 0)});
      continue;
    }
    for (const Output& output : field.kind->facts().outputs)
      inputs.push_back(
          {.name = output.name, .numbers = elements_of(output.row_shape)});
  }
  return inputs;
}

Target target_from(const Tabular& settings, const FittedFields& data) {
  const Field& field = target_field(settings.target, data);
  if (std::optional<Classes> classes = classes_of(data, field))
    return target_of_classes(field, *classes, data);
  Target target{.name = field.name};
  const std::optional<NumberFacts>& numbers = field.kind->facts().numbers;
  target.masked = numbers && numbers->missing == MissingValue::By::mask;
  if (classifies(settings, field)) {
    target.classes = 2;
    return target;
  }
  const Standardization number =
      standardizations_from(data.statistics_of(field.name))[0];
  target.scale = scale_of(number);
  target.log1p = number.log1p;
  target.constant = {.unit = target.scale.divisor,
                     .zero = target.scale.mean,
                     .known = number.standardize && !number.min_max};
  return target;
}

AnswerFacts answers_about(const Target& target, const FittedFields& data) {
  const Field& field = target_field(target.name, data);
  if (target.classes == 0) return {.names = {Json(target.name)}};
  if (classes_of(data, field))
    return answers_about_classes(target, field, data.statistics_of(field.name));
  return {.of = AnswerFacts::Of::one_class, .names = {Json(false), Json(true)}};
}

TabularShape shape_of(const Tabular& settings, const std::vector<Input>& inputs,
                      const Target& target) {
  TabularShape shape{.width = settings.width,
                     .depth = settings.depth,
                     .answers = std::max<std::int64_t>(1, target.classes)};
  for (const Input& input : inputs) {
    shape.numbers += input.numbers;
    if (input.classes > 0)
      shape.categories.push_back({.name = input.name,
                                  .count = input.classes,
                                  .width = embedding_width(input.classes)});
  }
  return shape;
}

class TabularModel final : public Model {
 public:
  TabularModel(const ModelSpec& spec, const FittedFields& data,
               const at::TensorOptions& options)
      : settings_(tabular_of(spec)),
        inputs_(inputs_from(settings_, data)),
        target_(target_from(settings_, data)),
        smoothing_(target_.classes > 0 ? spec.learning.label_smoothing : 0),
        precision_(spec.learning.precision),
        device_(options.device()),
        network_(shape_of(settings_, inputs_, target_), settings_.seed,
                 options) {
    facts_ = {.parameters = network_.parameters(),
              .smoothing = smoothing_,
              .answers = answers_about(target_, data),
              .description = description()};
  }

  MeanLoss loss(const BatchRows& batch, const DrawnFor& rows) override {
    const Truth truth = truth_of(batch, target_);
    at::Tensor answers = answers_of(batch, kept(truth.weight, rows));
    at::Tensor counted = truth.weight.sum();
    at::Tensor sum =
        (losses(answers, truth.value, smoothing_) * truth.weight).sum();
    return {sum / counted.clamp_min(1), counted};
  }

  at::Tensor look(const BatchRows& batch) override {
    at::Tensor answers = answers_of(batch, {});
    at::Tensor said = said_by(answers);
    // Last: rows that were counted cannot be looked at again.
    if (has_tensor(batch, target_.name)) measure(answers, batch);
    return said;
  }

  Validated seen(RankShare* ranks) override {
    const std::vector<Outcome> rows = of_all_ranks(ranks, seen_.take());
    const bool classes = target_.classes > 0;
    Validated found{.metrics =
                        classes ? class_metrics(rows, target_.classes)
                                : number_metrics(rows, target_.scale.divisor)};
    if (!rows.empty())
      found.details =
          classes ? class_details(rows, target_.classes, target_.constant)
                  : number_details(rows, target_.constant);
    return found;
  }

 private:
  /// What the network's answers mean.
  at::Tensor said_by(const at::Tensor& answers) const {
    if (target_.classes > 0) return answers.softmax(1);
    at::Tensor number =
        answers.to(at::kDouble) * target_.scale.divisor + target_.scale.mean;
    return target_.log1p ? number.expm1() : number;
  }

  void measure(const at::Tensor& answers, const BatchRows& batch) {
    const Truth truth = truth_of(batch, target_);
    const bool two = target_.classes == 2;
    seen_.add({.loss = losses(answers, truth.value, 0),
               .truth = truth.value,
               .guess = target_.classes > 0 ? answers.argmax(1)
                                            : answers.select(1, 0),
               .score = two ? answers.select(1, 1) - answers.select(1, 0)
                            : at::Tensor(),
               .weight = truth.weight,
               .samples = batch.ids()});
  }

  Json description() const {
    Json json;
    json["kind"] = "tabular";
    json["target"] = target_.name;
    json["classes"] = target_.classes;
    json["inputs"] = Json::Array{};
    for (const Input& input : inputs_) {
      Json entry;
      entry["name"] = input.name;
      if (input.classes > 0)
        entry["classes"] = input.classes;
      else
        entry["numbers"] = input.numbers;
      json["inputs"].push_back(std::move(entry));
    }
    json["width"] = settings_.width;
    json["depth"] = settings_.depth;
    json["dropout"] = settings_.dropout;
    json["seed"] = static_cast<std::int64_t>(settings_.seed);
    return json;
  }

  at::Tensor answers_of(const BatchRows& batch, const at::Tensor& kept) const {
    std::vector<at::Tensor> classes, numbers;
    for (const Input& input : inputs_) {
      at::Tensor tensor = tensor_of(batch, input.name);
      if (input.classes > 0)
        classes.push_back(tensor);
      else
        numbers.push_back(
            tensor.reshape({batch.rows(), input.numbers}).to(at::kFloat));
    }
    at::Tensor all;
    if (!numbers.empty())
      all = numbers.size() == 1 ? numbers[0] : at::cat(numbers, 1);
    const Autocast cast(device_, precision_);
    return network_(classes, all, kept).to(at::kFloat);
  }

  /// What the inner numbers of the blocks are multiplied with, so that their
  /// mean stays. Four decisions of each draw.
  at::Tensor kept(const at::Tensor& like, const DrawnFor& rows) const {
    if (settings_.dropout == 0 || settings_.depth == 0) return {};
    // A draw of 64 bits decides for four numbers by 16 bits each, so the share
    // that is left out is a multiple of 2^-16.
    const auto most = static_cast<std::uint64_t>(settings_.dropout * 0x1p16);
    const auto one = static_cast<float>(1 / (1 - settings_.dropout));
    return drawn(like, settings_.depth * settings_.width, settings_.seed, rows,
                 kKept, [most, one](Random& random, std::span<float> numbers) {
                   std::uint64_t bits = 0;
                   for (std::size_t i = 0; i < numbers.size(); ++i) {
                     bits = i % 4 == 0 ? random.next() : bits >> 16;
                     numbers[i] = (bits & 0xffff) < most ? 0 : one;
                   }
                 });
  }

  /// [rows].
  at::Tensor losses(const at::Tensor& answers, const at::Tensor& truth,
                    double smoothing) const {
    if (target_.classes == 0) return (answers.select(1, 0) - truth).square();
    return class_losses(answers, truth, smoothing);
  }

  const Tabular settings_;
  const std::vector<Input> inputs_;
  const Target target_;
  const double smoothing_;
  const Dtype precision_;
  const at::Device device_;
  const TabularNetwork network_;
  Outcomes seen_;
};

}  // namespace

std::unique_ptr<Model> make_tabular(const ModelSpec& spec,
                                    const FittedFields& data,
                                    const at::TensorOptions& options) {
  return std::make_unique<TabularModel>(spec, data, options);
}

}  // namespace penstock
