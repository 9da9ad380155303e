#include "penstock/trainer/adamw.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "penstock/base/error.h"

namespace penstock {
namespace {

/// A matrix and a bias with gradients that are a function of the step.
class AdamWTest : public testing::Test {
 protected:
  AdamWTest() {
    parameters_.push_back(
        {"weight", at::tensor({0.5f, -2.0f, 3.0f, 0.1f}).view({2, 2})});
    parameters_.push_back({"bias", at::tensor({1.0f, -1.0f})});
    for (Parameter& parameter : parameters_) parameter.value.requires_grad_();
  }

  static double gradient(int step, int i) { return std::sin(step + 2.5 * i); }

  void set_gradients(int step) {
    int i = 0;
    for (Parameter& parameter : parameters_) {
      at::Tensor gradient_of = at::zeros(parameter.value.sizes());
      float* value = gradient_of.mutable_data_ptr<float>();
      for (std::int64_t n = 0; n < gradient_of.numel(); ++n)
        value[n] = static_cast<float>(gradient(step, i++));
      parameter.value.mutable_grad() = gradient_of;
    }
  }

  std::vector<double> values() const {
    std::vector<double> all;
    for (const Parameter& parameter : parameters_)
      for (std::int64_t n = 0; n < parameter.value.numel(); ++n)
        all.push_back(parameter.value.const_data_ptr<float>()[n]);
    return all;
  }

  /// The same steps in double precision, by the formulas of the paper.
  std::vector<double> reference(int steps, const AdamW::Options& options,
                                double rate) const {
    std::vector<double> value = values(), first(6), second(6);
    for (int step = 1; step <= steps; ++step) {
      double squares = 0;
      for (int i = 0; i < 6; ++i)
        squares += gradient(step, i) * gradient(step, i);
      double factor =
          options.clip_norm == 0
              ? 1
              : std::min(1.0, options.clip_norm / std::sqrt(squares));
      for (int i = 0; i < 6; ++i) {
        auto at = static_cast<std::size_t>(i);
        double g = factor * gradient(step, i);
        if (i < 4) value[at] *= 1 - rate * options.weight_decay;
        first[at] = options.beta1 * first[at] + (1 - options.beta1) * g;
        second[at] = options.beta2 * second[at] + (1 - options.beta2) * g * g;
        double m = first[at] / (1 - std::pow(options.beta1, step));
        double v = second[at] / (1 - std::pow(options.beta2, step));
        value[at] -= rate * m / (std::sqrt(v) + options.epsilon);
      }
    }
    return value;
  }

  void expect_like_reference(const AdamW::Options& options) {
    std::vector<double> expected = reference(20, options, 0.01);
    AdamW optimizer(parameters_, options);
    for (int step = 1; step <= 20; ++step) {
      set_gradients(step);
      optimizer.step(0.01);
    }
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(values()[i], expected[i], 3e-6) << i;
  }

  std::vector<Parameter> parameters_;
};

TEST_F(AdamWTest, MovesLikeTheFormulasInDoublePrecision) {
  expect_like_reference({.weight_decay = 0});
}

TEST_F(AdamWTest, DecaysMatricesAndNoBiases) {
  expect_like_reference({.weight_decay = 0.5});
}

TEST_F(AdamWTest, ClipsTheNormOfAllGradientsTogether) {
  expect_like_reference({.weight_decay = 0.1, .clip_norm = 0.3});
}

TEST_F(AdamWTest, LeavesSmallGradientsAsTheyAre) {
  expect_like_reference({.weight_decay = 0.1, .clip_norm = 1000});
}

TEST_F(AdamWTest, ClearsTheGradients) {
  AdamW optimizer(parameters_, {});
  set_gradients(1);
  optimizer.step(0.01);
  for (const Parameter& parameter : parameters_)
    EXPECT_FALSE(parameter.value.grad().defined()) << parameter.name;
}

TEST_F(AdamWTest, StateNamesEveryMomentAndTheSteps) {
  AdamW optimizer(parameters_, {});
  set_gradients(1);
  optimizer.step(0.01);
  std::vector<std::string> names;
  for (const Parameter& tensor : optimizer.state())
    names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "steps", "first_moment.weight", "second_moment.weight",
                       "first_moment.bias", "second_moment.bias"}));
  EXPECT_EQ(optimizer.state()[0].value.item<float>(), 1);
}

TEST_F(AdamWTest, MissesNoGradientInSilence) {
  AdamW optimizer(parameters_, {});
  set_gradients(1);
  parameters_[1].value.mutable_grad().reset();
  EXPECT_THROW(optimizer.step(0.01), Error);
}

}  // namespace
}  // namespace penstock
