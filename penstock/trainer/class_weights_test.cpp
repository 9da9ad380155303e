#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/trainer/metrics.h"
#include "penstock/trainer/target.h"

// What classes and labels weigh, and what is measured of labels.
namespace penstock {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

TEST(ClassWeights, AreThoseOfScikitLearn) {
  // compute_class_weight("balanced", ...): 8 / (2 x 6), 8 / (2 x 2).
  const std::vector<std::int64_t> counts = {6, 0, 2};
  EXPECT_THAT(balanced_weights(counts),
              ElementsAre(FloatEq(2.0F / 3), 1, FloatEq(2)));
  const std::vector<std::int64_t> labels = {2, 0, 8, 4};
  EXPECT_THAT(balanced_label_weights(labels, 8), ElementsAre(3, 1, 1, 1));
}

TEST(ClassWeights, GiveTheLossOfTorch) {
  const at::Tensor answers =
      at::tensor({0.5F, -1.0F, 2.0F, 1.5F, 0.0F, -0.5F, -2.0F, 0.25F, 1.0F})
          .view({3, 3});
  const at::Tensor truth = at::tensor({2, 0, 1}, at::kLong);
  const at::Tensor weights = at::tensor({0.5F, 3.0F, 1.25F});
  for (double smoothing : {0.0, 0.1}) {
    const at::Tensor expected = at::cross_entropy_loss(
        answers, truth, weights, at::Reduction::Mean, -100, smoothing);
    const at::Tensor found =
        class_losses(answers, truth, smoothing, weights).sum() /
        weights.index_select(0, truth).sum();
    EXPECT_NEAR(found.item<double>(), expected.item<double>(), 1e-6);
  }
}

TEST(LabelMetrics, CountEachLabelAndEachRow) {
  // Of label 0 the example of scikit-learn's average_precision_score: 0.8333;
  // label 1 is nowhere; label 2 is where it was said to be.
  const LabelOutcomes outcomes{
      .labels = 3,
      .losses = {1, 2, 3, 6},
      .truths = {false, false, true, false, false, false, true, false, false,
                 true, false, true},
      .scores = {-4, -1, 2, 0.4, -1, -3, 0.35, -1, -2, 0.8, -1, 1}};
  const Json seen = label_metrics(outcomes);
  EXPECT_DOUBLE_EQ(number(seen, "val_loss"), 3);
  EXPECT_DOUBLE_EQ(number(seen, "val_exact_match"), 0.75);
  // Label 0: 2 right of 3 said and 2 there; label 2: all.
  EXPECT_DOUBLE_EQ(number(seen, "val_macro_f1"), (0.8 + 1) / 2);
  EXPECT_DOUBLE_EQ(number(seen, "val_micro_f1"), 2 * 4.0 / (5 + 4));
  EXPECT_DOUBLE_EQ(number(seen, "val_map"), (5.0 / 6 + 1) / 2);
}

TEST(LabelMetrics, TiesAreFoundTogetherAndWithoutLabelsThereIsNoPrecision) {
  const LabelOutcomes ties{
      .labels = 1, .losses = {0, 0}, .truths = {true, false}, .scores = {1, 1}};
  EXPECT_DOUBLE_EQ(number(label_metrics(ties), "val_map"), 0.5);
  const LabelOutcomes none{
      .labels = 1, .losses = {0}, .truths = {false}, .scores = {-1}};
  EXPECT_TRUE(label_metrics(none).find("val_map")->is_null());
  EXPECT_DOUBLE_EQ(number(label_metrics(none), "val_macro_f1"), 1);
  EXPECT_TRUE(label_metrics({.labels = 2}).object().empty());
}

}  // namespace
}  // namespace penstock
