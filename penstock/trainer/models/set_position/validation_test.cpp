#include "penstock/trainer/models/set_position/validation.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

TEST(Validation, WithoutARowSaysNothing) {
  Validation validation;
  EXPECT_TRUE(validation.take().object().empty());
}

TEST(Validation, GoesOverAllBatches) {
  Validation validation;
  validation.add(at::tensor({1.0, 2.0}), at::tensor({10.0, 30.0}),
                 at::tensor({0.5, 2.0}), at::tensor({1.0f, 1.0f}));
  validation.add(at::tensor({6.0}), at::tensor({20.0}), at::tensor({3.0}),
                 at::tensor({1.0f}));
  Json json = validation.take();
  EXPECT_DOUBLE_EQ(number(json, "val_loss"), 3);
  EXPECT_DOUBLE_EQ(number(json, "val_median_km"), 20);
  EXPECT_DOUBLE_EQ(number(json, "val_mean_km"), 20);
  // 90 % of a two-dimensional normal distribution lie within 2.146 deviations.
  EXPECT_DOUBLE_EQ(number(json, "val_within_90"), 2.0 / 3);
}

TEST(Validation, MedianOfAnEvenNumberIsHalfWay) {
  Validation validation;
  at::Tensor none = at::tensor({0.0, 0.0, 0.0, 0.0});
  validation.add(none, at::tensor({4.0, 1.0, 100.0, 2.0}), none,
                 at::tensor({1.0f, 1.0f, 1.0f, 1.0f}));
  EXPECT_DOUBLE_EQ(number(validation.take(), "val_median_km"), 3);
}

TEST(Validation, LeavesPaddingOut) {
  Validation validation;
  validation.add(at::tensor({1.0, 9.0}), at::tensor({10.0, 90.0}),
                 at::tensor({1.0, 9.0}), at::tensor({1.0f, 0.0f}));
  Json json = validation.take();
  EXPECT_DOUBLE_EQ(number(json, "val_loss"), 1);
  EXPECT_DOUBLE_EQ(number(json, "val_median_km"), 10);
}

TEST(Validation, StartsAnewWhenTaken) {
  Validation validation;
  at::Tensor one = at::tensor({1.0});
  validation.add(one, one, one, one);
  EXPECT_FALSE(validation.take().object().empty());
  EXPECT_TRUE(validation.take().object().empty());
}

}  // namespace
}  // namespace penstock
