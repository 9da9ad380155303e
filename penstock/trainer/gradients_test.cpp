#include "penstock/trainer/gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>

namespace penstock {
namespace {

float value_of(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>()[0];
}

class GradientsTest : public testing::Test {
 protected:
  void backward(float gradient) {
    weight_.mutable_grad() = at::tensor({gradient});
  }

  at::Tensor weight_ = at::tensor({1.0f}).requires_grad_();
  Gradients gradients_{{{"w", weight_}}};
};

TEST_F(GradientsTest, OfStepsThatMoveTogetherAreAdded) {
  backward(9);  // of a step that had no memory
  auto none = gradients_.set_aside(true);
  backward(1);
  gradients_.add(none);
  auto earlier = gradients_.set_aside(false);
  EXPECT_FALSE(weight_.grad().defined());
  backward(2);
  gradients_.add(earlier);
  EXPECT_EQ(value_of(gradients_.all()[0]), 3);
}

TEST_F(GradientsTest, OfAStepThatFailedChangeNone) {
  backward(1);
  auto earlier = gradients_.set_aside(false);
  backward(7);
  gradients_.put_back(earlier);
  ASSERT_EQ(gradients_.kept().size(), 1u);
  EXPECT_EQ(value_of(gradients_.kept()[0].value), 1);
}

TEST_F(GradientsTest, BeginAnewForAStateThatHasThemOrNot) {
  backward(1);
  gradients_.begin_anew(true);
  EXPECT_EQ(value_of(gradients_.kept()[0].value), 0);
  gradients_.begin_anew(false);
  EXPECT_TRUE(gradients_.kept().empty());
}

TEST(LossScale, IsUndoneBeforeTheWeightsMove) {
  LossScale scale(true, at::TensorOptions());
  at::Tensor loss = at::tensor(0.5f);
  EXPECT_EQ(value_of(scale.scaled(loss)), 0.5f * 65536);
  at::Tensor gradient = at::tensor({65536.0f});
  EXPECT_EQ(value_of(scale.unscale({gradient})), 0);
  EXPECT_EQ(value_of(gradient), 1);
  scale.update();
  EXPECT_EQ(value_of(scale.state()[0].value), 65536);
}

TEST(LossScale, IsHalvedByAGradientThatIsInfiniteAndTheStepLeftOut) {
  LossScale scale(true, at::TensorOptions());
  at::Tensor gradient = at::tensor({std::numeric_limits<float>::infinity()});
  EXPECT_EQ(value_of(scale.unscale({gradient})), 1);
  scale.update();
  EXPECT_EQ(value_of(scale.state()[0].value), 32768);
}

TEST(LossScale, DoesNothingForOtherPrecisions) {
  LossScale scale(false, at::TensorOptions());
  at::Tensor loss = at::tensor(0.5f);
  EXPECT_EQ(value_of(scale.scaled(loss)), 0.5f);
  EXPECT_FALSE(scale.unscale({loss}).defined());
  EXPECT_TRUE(scale.state().empty());
}

}  // namespace
}  // namespace penstock
