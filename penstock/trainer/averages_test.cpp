#include "penstock/trainer/averages.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

float value_of(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>()[0];
}

TEST(Averages, MoveTowardsTheWeightsByTheRestOfTheirDecay) {
  at::Tensor weight = at::tensor({1.0f}).requires_grad_();
  Averages averages({{"w", weight}}, 0.75);
  weight.detach().fill_(5);
  averages.update();
  EXPECT_FLOAT_EQ(value_of(averages.state()[0].value), 2);
  EXPECT_EQ(averages.state()[0].name, "w");
}

TEST(Averages, AreWhatTheModelComputesWithWhileTheyAreUsed) {
  at::Tensor weight = at::tensor({1.0f}).requires_grad_();
  at::Tensor learned = weight.detach();  // as an optimiser holds it
  Averages averages({{"w", weight}}, 0.5);
  learned.fill_(3);
  averages.update();
  EXPECT_FALSE(averages.use(true));
  EXPECT_FLOAT_EQ(value_of(weight), 2);
  EXPECT_TRUE(averages.use(false));
  EXPECT_FLOAT_EQ(value_of(weight), 3);
  learned.fill_(4);
  EXPECT_FLOAT_EQ(value_of(weight), 4);
}

TEST(Averages, AreNoneWithoutADecay) {
  at::Tensor weight = at::tensor({1.0f}).requires_grad_();
  Averages averages({{"w", weight}}, 0);
  averages.update();
  averages.use(true);
  EXPECT_FLOAT_EQ(value_of(weight), 1);
  EXPECT_TRUE(averages.state().empty());
}

}  // namespace
}  // namespace penstock
