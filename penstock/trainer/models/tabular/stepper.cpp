#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

#include "penstock/trainer/autocast.h"
#include "penstock/trainer/model_stepper.h"
#include "penstock/trainer/models/tabular/descriptor.h"
#include "penstock/trainer/models/tabular/metrics.h"
#include "penstock/trainer/models/tabular/network.h"
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

/// What the model is to tell.
struct Target {
  std::string name;
  std::int64_t classes = 0;      ///< 0: a number
  std::int64_t first_class = 0;  ///< 1: class 0 is unknown, and no truth
  bool masked = false;           ///< NAME_mask says where there is a truth
  double unit = 1;               ///< what 1 is in the target's own unit
};

/// What the rows of a batch are: a class from 0 or a number, and what it
/// counts.
struct Truth {
  at::Tensor value;   // [rows], int64 or float32
  at::Tensor weight;  // [rows], float32
};

/// Of a category: its classes, and whether class 0 is what is unknown.
struct Classes {
  std::int64_t count = 0;
  bool unknown = false;
};

std::optional<Classes> classes_of(const TableDataset& data,
                                  const Field& field) {
  const Json recipe = field.kind->recipe();
  const Json* category = recipe.find("category");
  if (category == nullptr) return std::nullopt;
  return Classes{
      std::ssize(data.statistics_of(field.name).find("classes")->array()),
      *category->find("unknown") == Json("class")};
}

std::vector<Input> inputs_from(const Tabular& settings,
                               const TableDataset& data) {
  std::vector<Input> inputs;
  for (const Field& field : inputs_of(settings, data.fields())) {
    if (std::optional<Classes> classes = classes_of(data, field)) {
      inputs.push_back(
          {.name = field.name,
           .classes = classes->count + (classes->unknown ? 1 : 0)});
      continue;
    }
    for (const Output& output : field.kind->outputs())
      inputs.push_back(
          {.name = output.name, .numbers = elements_of(output.row_shape)});
  }
  return inputs;
}

const Field& target_field(const Tabular& settings, const TableDataset& data) {
  auto found = std::ranges::find(data.fields(), settings.target, &Field::name);
  if (found != data.fields().end()) return *found;
  throw Error(ErrorKind::request,
              {.code = "model.no_field",
               .what = "cannot make the model",
               .where = "model",
               .why = "there is no field '" + settings.target + "'",
               .next = "name a field of the job"});
}

[[noreturn]] void refuse_one_class(const Field& field, const Json& classes) {
  std::string why = "the train rows have no class in field '";
  if (!classes.array().empty())
    why = "the train rows have one class alone, " + classes.array()[0].dump() +
          ", in field '";
  throw Error(ErrorKind::request,
              {.code = "model.one_class",
               .what = "cannot learn to tell classes apart",
               .where = "model",
               .why = why + field.name + "', expected two or more",
               .next = "look at the column, at \"source.where\" and at the "
                       "category's \"min_count\""});
}

Target target_from(const Tabular& settings, const TableDataset& data) {
  const Field& field = target_field(settings, data);
  Target target{.name = field.name};
  if (std::optional<Classes> classes = classes_of(data, field)) {
    target.classes = classes->count;
    target.first_class = classes->unknown ? 1 : 0;
    if (target.classes < 2)
      refuse_one_class(field, *data.statistics_of(field.name).find("classes"));
    return target;
  }
  const Json recipe = field.kind->recipe();
  const Json* missing = recipe.find("missing");
  target.masked = missing != nullptr && *missing == Json("mask");
  if (classifies(settings, field))
    target.classes = 2;
  else
    target.unit =
        scale_of(standardizations_from(data.statistics_of(field.name))[0])
            .divisor;
  return target;
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
  TabularModel(const ModelSpec& spec, const TableDataset& data,
               const at::TensorOptions& options)
      : settings_(tabular_of(spec)),
        inputs_(inputs_from(settings_, data)),
        target_(target_from(settings_, data)),
        smoothing_(target_.classes > 0 ? spec.learning.label_smoothing : 0),
        precision_(spec.learning.precision),
        device_(options.device()),
        network_(shape_of(settings_, inputs_, target_), settings_.seed,
                 options) {}

  const std::vector<Parameter>& parameters() const override {
    return network_.parameters();
  }

  at::Tensor loss(const Batch& batch, const DrawnFor& rows) override {
    const Truth truth = truth_of(batch);
    at::Tensor answers = answers_of(batch, kept(truth.weight, rows));
    at::Tensor all = truth.weight.sum().clamp_min(1);
    return (losses(answers, truth.value, smoothing_) * truth.weight).sum() /
           all;
  }

  void look(const Batch& batch) override {
    const Truth truth = truth_of(batch);
    at::Tensor answers = answers_of(batch, {});
    at::Tensor guess =
        target_.classes > 0 ? answers.argmax(1) : answers.select(1, 0);
    at::Tensor score = target_.classes == 2
                           ? answers.select(1, 1) - answers.select(1, 0)
                           : at::zeros({batch.rows()}, answers.options());
    auto exact = [](const at::Tensor& tensor) {
      return tensor.to(at::kDouble);
    };
    seen_.push_back(
        at::stack({exact(losses(answers, truth.value, 0)), exact(truth.value),
                   exact(guess), exact(score), exact(truth.weight)},
                  1));
  }

  Json seen() override {
    const std::vector<Outcome> rows = outcomes();
    return target_.classes > 0 ? class_metrics(rows, target_.classes)
                               : number_metrics(rows, target_.unit);
  }

  std::optional<double> smoothing() const override { return smoothing_; }

  Json description() const override {
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

 private:
  Truth truth_of(const Batch& batch) const {
    const std::int64_t rows = batch.rows();
    at::Tensor value = tensor_of(batch, target_.name).reshape({rows});
    at::Tensor weight = weights_of(batch);
    if (target_.masked)
      weight =
          weight * tensor_of(batch, target_.name + "_mask").reshape({rows});
    if (target_.classes == 0) return {value.to(at::kFloat), weight};
    value = value.to(at::kLong) - target_.first_class;
    if (target_.first_class > 0) weight = weight * value.ge(0);
    return {value.clamp(0, target_.classes - 1), weight};
  }

  at::Tensor answers_of(const Batch& batch, const at::Tensor& kept) const {
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
    const auto most = static_cast<std::uint64_t>(settings_.dropout * 0x1p16);
    const auto one = static_cast<float>(1 / (1 - settings_.dropout));
    return drawn(like, settings_.depth * settings_.width, settings_.seed, rows,
                 kKept, [&](Random& random, std::span<float> numbers) {
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
    at::Tensor likely = answers.log_softmax(1);
    at::Tensor of_truth = likely.gather(1, truth.unsqueeze(1)).select(1, 0);
    if (smoothing == 0) return of_truth * -1;
    return of_truth * (smoothing - 1) - likely.mean(1) * smoothing;
  }

  /// Of all rows that were looked at and have a truth. Starts anew.
  std::vector<Outcome> outcomes() {
    std::vector<Outcome> rows;
    if (seen_.empty()) return rows;
    at::Tensor all = at::cat(seen_, 0).to(at::kCPU).contiguous();
    seen_.clear();
    const double* row = all.const_data_ptr<double>();
    for (std::int64_t i = 0; i < all.size(0); ++i, row += all.size(1))
      if (row[4] != 0)
        rows.push_back({.loss = row[0],
                        .truth = row[1],
                        .guess = row[2],
                        .score = row[3]});
    return rows;
  }

  const Tabular settings_;
  const std::vector<Input> inputs_;
  const Target target_;
  const double smoothing_;
  const Dtype precision_;
  const at::Device device_;
  const TabularNetwork network_;
  std::vector<at::Tensor> seen_;  // [rows, 5] each
};

}  // namespace

std::unique_ptr<Stepper> make_tabular_stepper(const ModelSpec& spec,
                                              const TableDataset& data,
                                              Device& device,
                                              std::int64_t steps) {
  return make_model_stepper(
      spec, device, steps, [&](const at::TensorOptions& options) {
        return std::make_unique<TabularModel>(spec, data, options);
      });
}

}  // namespace penstock
