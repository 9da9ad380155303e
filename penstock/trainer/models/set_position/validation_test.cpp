#include "penstock/trainer/models/set_position/validation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "penstock/session/session.h"

namespace penstock {
namespace {

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

/// Rows at (0, 0), of which it said the same.
void add(Validation& validation, const at::Tensor& loss, const at::Tensor& km,
         const at::Tensor& deviations, const at::Tensor& weight) {
  const at::Tensor here = at::zeros({loss.size(0), 2});
  validation.add({.loss = loss,
                  .km = km,
                  .deviations = deviations,
                  .weight = weight,
                  .truth = here,
                  .guess = here});
}

TEST(Validation, WithoutARowSaysNothing) {
  Validation validation;
  EXPECT_TRUE(validation.take().metrics.object().empty());
}

TEST(Validation, GoesOverAllBatches) {
  Validation validation;
  add(validation, at::tensor({1.0, 2.0}), at::tensor({10.0, 30.0}),
      at::tensor({0.5, 2.0}), at::tensor({1.0f, 1.0f}));
  add(validation, at::tensor({6.0}), at::tensor({20.0}), at::tensor({3.0}),
      at::tensor({1.0f}));
  Json json = validation.take().metrics;
  EXPECT_DOUBLE_EQ(number(json, "val_loss"), 3);
  EXPECT_DOUBLE_EQ(number(json, "val_median_km"), 20);
  EXPECT_DOUBLE_EQ(number(json, "val_mean_km"), 20);
  // 90 % of a two-dimensional normal distribution lie within 2.146 deviations.
  EXPECT_DOUBLE_EQ(number(json, "val_within_90"), 2.0 / 3);
}

TEST(Validation, MedianOfAnEvenNumberIsHalfWay) {
  Validation validation;
  at::Tensor none = at::tensor({0.0, 0.0, 0.0, 0.0});
  add(validation, none, at::tensor({4.0, 1.0, 100.0, 2.0}), none,
      at::tensor({1.0f, 1.0f, 1.0f, 1.0f}));
  EXPECT_DOUBLE_EQ(number(validation.take().metrics, "val_median_km"), 3);
}

TEST(Validation, LeavesPaddingOut) {
  Validation validation;
  add(validation, at::tensor({1.0, 9.0}), at::tensor({10.0, 90.0}),
      at::tensor({1.0, 9.0}), at::tensor({1.0f, 0.0f}));
  Json json = validation.take().metrics;
  EXPECT_DOUBLE_EQ(number(json, "val_loss"), 1);
  EXPECT_DOUBLE_EQ(number(json, "val_median_km"), 10);
}

TEST(Validation, StartsAnewWhenTaken) {
  Validation validation;
  at::Tensor one = at::tensor({1.0});
  add(validation, one, one, one, one);
  EXPECT_FALSE(validation.take().metrics.object().empty());
  EXPECT_TRUE(validation.take().metrics.object().empty());
}

TEST(Validation, ListsTheRowsThatAreTheFurthestOff) {
  Validation validation(MeanPlace{.latitude = 50, .longitude = 10});
  const std::vector<SampleId> samples = {7, 8, 9};
  const at::Tensor two =
      at::stack({at::tensor({50.0, 11.0}), at::tensor({51.0, 10.0}),
                 at::tensor({0.0, 0.0})});
  validation.add({.loss = at::tensor({1.0, 2.0, 3.0}),
                  .km = at::tensor({5.0, 20.0, 99.0}),
                  .deviations = at::tensor({1.0, 1.0, 1.0}),
                  .weight = at::tensor({1.0f, 1.0f, 0.0f}),
                  .truth = two,
                  .guess = two + 0.5,
                  .samples = samples});
  const Json details = validation.take().details;
  const Json::Array& worst = details.find("worst")->array();
  ASSERT_EQ(worst.size(), 2U) << "padding is no row";
  EXPECT_EQ(worst[0].find("sample")->integer(), 8);
  EXPECT_EQ(number(worst[0], "km"), 20);
  EXPECT_EQ(worst[0].find("truth")->array()[0].number(), 51);
  EXPECT_EQ(worst[0].find("guess")->array()[1].number(), 10.5);
  // A degree of latitude is 111.2 km everywhere, one of longitude 71.5 km at a
  // latitude of 50 degrees.
  const Json& baseline = *details.find("baseline");
  EXPECT_NEAR(number(baseline, "val_mean_km"), (111.195 + 71.474) / 2, 0.01);
  EXPECT_EQ(details.find("residuals")->find("unit")->string(), "km");
  EXPECT_EQ(number(*details.find("residuals"), "mean"), 12.5);
}

}  // namespace
}  // namespace penstock
