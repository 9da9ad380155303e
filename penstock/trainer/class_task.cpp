#include "penstock/trainer/class_task.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <optional>
#include <utility>

#include "penstock/trainer/gradients.h"
#include "penstock/trainer/outcome_details.h"
#include "penstock/trainer/outcomes.h"
#include "penstock/trainer/ranks/rank_share.h"

namespace penstock {
namespace {

/// Undefined where all classes weigh the same.
at::Tensor weights_of_classes(const Target& target, at::Device device) {
  if (target.class_weights.empty()) return {};
  return at::tensor(target.class_weights).to(device);
}

at::Tensor exact(const at::Tensor& of) { return of.to(at::kDouble); }

at::Tensor of_truths(const at::Tensor& losses, const Truth& truth) {
  return losses.masked_fill(truth.weight.eq(0), -1);
}

/// One class of each row: the cross entropy.
class OneClass final : public ClassTask {
 public:
  OneClass(Target target, double smoothing, bool balance, at::Device device)
      : target_(std::move(target)),
        smoothing_(smoothing),
        balance_(balance),
        weights_(weights_of_classes(target_, device)) {}

  // The sum is divided by the sum of the true classes' weights, not by the
  // rows: a weighted mean, as torch has it, so that weights do not scale the
  // gradients as a whole.
  MeanLoss loss(const at::Tensor& answers, const Truth& truth) const override {
    at::Tensor counted =
        weights_.defined()
            ? (truth.weight * weights_.index_select(0, truth.value)).sum()
            : truth.weight.sum();
    at::Tensor sum = (class_losses(answers, truth.value, smoothing_, weights_) *
                      truth.weight)
                         .sum();
    return {sum / counted.clamp_min(kLeastCount), counted};
  }

  at::Tensor look(const at::Tensor& answers, const BatchRows& batch) override {
    const Truth truth = truth_of(batch, target_);
    at::Tensor of_truth = answers.gather(1, truth.value.unsqueeze(1));
    const at::Tensor losses = class_losses(answers, truth.value, 0);
    at::Tensor told = of_truths(losses, truth);
    seen_.add({.loss = losses,
               .truth = truth.value,
               .guess = answers.argmax(1),
               .score = answers.select(1, 1) - answers.select(1, 0),
               .before = answers.gt(of_truth).sum(1),
               .weight = truth.weight,
               .samples = batch.ids()});
    return told;
  }

  Validated seen(RankShare* ranks) override {
    const std::vector<Outcome> rows = of_all_ranks(ranks, seen_.take());
    Validated found{.metrics = class_metrics(rows, target_.classes)};
    if (rows.empty()) return found;
    found.details = class_details(rows, target_.classes, target_.constant);
    if (target_.classes > 5)
      found.metrics["val_top5_accuracy"] = top_share(rows, 5);
    if (!balance_) return found;
    const Json balance = balance_metrics(rows, target_.classes);
    for (const auto& [name, value] : balance.object())
      found.metrics[name] = value;
    return found;
  }

 private:
  const Target target_;
  const double smoothing_;
  const bool balance_;
  const at::Tensor weights_;  // [classes], or undefined
  Outcomes seen_;
};

/// Any number of labels of each row: whether it has one is told by itself.
class ManyLabels final : public ClassTask {
 public:
  ManyLabels(Target target, double smoothing, at::Device device)
      : target_(std::move(target)),
        smoothing_(smoothing),
        weights_(weights_of_classes(target_, device)) {}

  MeanLoss loss(const at::Tensor& answers, const Truth& truth) const override {
    at::Tensor value = truth.value;
    if (smoothing_ > 0) value = value * (1 - smoothing_) + smoothing_ / 2;
    at::Tensor counted = truth.weight.sum();
    at::Tensor sum = (losses(answers, value, weights_) * truth.weight).sum();
    return {sum / counted.clamp_min(kLeastCount), counted};
  }

  at::Tensor look(const at::Tensor& answers, const BatchRows& batch) override {
    const Truth truth = truth_of(batch, target_);
    const at::Tensor of_rows = losses(answers, truth.value, {});
    at::Tensor told = of_truths(of_rows, truth);
    seen_.push_back(
        at::cat({exact(truth.weight).unsqueeze(1), exact(of_rows).unsqueeze(1),
                 exact(truth.value), exact(answers)},
                1));
    samples_.insert(samples_.end(), batch.ids().begin(), batch.ids().end());
    return told;
  }

  Validated seen(RankShare* ranks) override {
    const std::int64_t labels = target_.classes, width = 2 + 2 * labels;
    std::vector<double> rows = take();
    if (ranks != nullptr) rows = ranks->gathered(rows, width);
    LabelOutcomes outcomes{.labels = labels};
    for (auto row = rows.begin(); row != rows.end(); row += width) {
      outcomes.samples.push_back(static_cast<std::int64_t>(row[0]));
      outcomes.losses.push_back(row[1]);
      for (std::int64_t at = 2; at < 2 + labels; ++at) {
        outcomes.truths.push_back(row[at] > 0);
        outcomes.scores.push_back(row[at + labels]);
      }
    }
    Validated found{.metrics = label_metrics(outcomes)};
    if (outcomes.rows() > 0) found.details = label_details(outcomes);
    return found;
  }

 private:
  /// Of the rows that have a truth: the sample, its loss, truths and answers.
  std::vector<double> take() {
    std::vector<double> rows;
    if (seen_.empty()) return rows;
    const at::Tensor all = at::cat(seen_, 0).to(at::kCPU).contiguous();
    seen_.clear();
    const std::vector<SampleId> samples = std::exchange(samples_, {});
    const double* row = all.const_data_ptr<double>();
    for (std::int64_t i = 0; i < all.size(0); ++i, row += all.size(1)) {
      if (row[0] == 0) continue;
      rows.push_back(static_cast<double>(samples[static_cast<std::size_t>(i)]));
      rows.insert(rows.end(), row + 1, row + all.size(1));
    }
    return rows;
  }

  /// [rows].
  static at::Tensor losses(const at::Tensor& answers, const at::Tensor& truth,
                           const at::Tensor& weights) {
    std::optional<at::Tensor> of_label;
    if (weights.defined()) of_label = weights;
    return at::binary_cross_entropy_with_logits(answers, truth, {}, of_label,
                                                at::Reduction::None)
        .mean(1);
  }

  const Target target_;
  const double smoothing_;
  const at::Tensor weights_;      // [labels], or undefined
  std::vector<at::Tensor> seen_;  // [rows, 2 + 2 x labels] each
  std::vector<SampleId> samples_;
};

}  // namespace

std::unique_ptr<ClassTask> make_class_task(const Target& target,
                                           double smoothing, bool balance,
                                           at::Device device) {
  if (target.many)
    return std::make_unique<ManyLabels>(target, smoothing, device);
  return std::make_unique<OneClass>(target, smoothing, balance, device);
}

}  // namespace penstock
