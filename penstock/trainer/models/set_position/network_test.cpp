#include "penstock/trainer/models/set_position/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "penstock/base/random.h"

namespace penstock {
namespace {

constexpr std::int64_t kInputs = 3;

at::Tensor random_tensor(at::IntArrayRef shape, std::uint64_t seed) {
  at::Tensor tensor = at::zeros(shape, at::kDouble);
  Random random(seed, 0, 0, 0);
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    tensor.mutable_data_ptr<double>()[i] = random.normal();
  return tensor;
}

double farthest(const at::Tensor& one, const at::Tensor& other) {
  return (one - other).abs().max().item<double>();
}

/// A network that says something: its last layer is not zero.
SetNetwork talking_network() {
  SetNetwork network({.inputs = kInputs, .width = 8}, 5,
                     at::TensorOptions(at::kDouble));
  for (const Parameter& parameter : network.parameters())
    if (parameter.name == "answer.weight")
      parameter.value.detach().copy_(random_tensor(parameter.value.sizes(), 6));
  return network;
}

class NetworkTest : public testing::Test {
 protected:
  at::Tensor loss() const {
    return (network_(elements_, mask_) - truth_).square().sum();
  }

  SetNetwork network_ = talking_network();
  at::Tensor elements_ = random_tensor({2, 4, kInputs}, 1);
  at::Tensor mask_ =
      at::tensor({1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0}).view({2, 4});
  at::Tensor truth_ = random_tensor({2, 3}, 2);
};

TEST_F(NetworkTest, DoesNotSeeTheOrderOfTheElements) {
  at::Tensor order = at::tensor({2, 0, 3, 1}, at::kLong);
  at::Tensor turned =
      network_(elements_.index_select(1, order), mask_.index_select(1, order));
  EXPECT_LT(farthest(turned, network_(elements_, mask_)), 1e-12);
}

TEST_F(NetworkTest, DoesNotSeeWhatIsNotThere) {
  at::Tensor junk = at::full({2, 3, kInputs}, 1e6, at::kDouble);
  at::Tensor padded =
      network_(at::cat({elements_, junk}, 1),
               at::cat({mask_, at::zeros({2, 3}, at::kDouble)}, 1));
  EXPECT_LT(farthest(padded, network_(elements_, mask_)), 1e-12);
}

TEST_F(NetworkTest, SeesWhatIsThere) {
  at::Tensor all = network_(elements_, at::ones({2, 4}, at::kDouble));
  at::Tensor some = network_(elements_, mask_);
  EXPECT_LT(farthest(all[0], some[0]), 1e-12);
  EXPECT_GT(farthest(all[1], some[1]), 1e-3);
}

TEST_F(NetworkTest, ASetOfNoneGivesFiniteNumbersAndGradients) {
  mask_ = at::zeros({2, 4}, at::kDouble);
  at::Tensor answers = network_(elements_, mask_);
  EXPECT_TRUE(answers.isfinite().all().item<bool>());
  answers.sum().backward();
  for (const Parameter& parameter : network_.parameters())
    EXPECT_TRUE(parameter.value.grad().isfinite().all().item<bool>())
        << parameter.name;
}

TEST_F(NetworkTest, GradientsAreThoseOfFiniteDifferences) {
  loss().backward();
  constexpr double kStep = 1e-6;
  for (const Parameter& parameter : network_.parameters()) {
    at::Tensor gradient = parameter.value.grad().contiguous();
    double* value = parameter.value.detach().mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < parameter.value.numel(); i += 7) {
      double kept = value[i];
      value[i] = kept + kStep;
      double above = loss().item<double>();
      value[i] = kept - kStep;
      double below = loss().item<double>();
      value[i] = kept;
      double slope = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient.const_data_ptr<double>()[i], slope,
                  1e-5 * std::max(1.0, std::abs(slope)))
          << parameter.name << " " << i;
    }
  }
}

TEST_F(NetworkTest, SaysNothingBeforeItHasLearned) {
  SetNetwork fresh({.inputs = kInputs, .width = 8}, 5,
                   at::TensorOptions(at::kDouble));
  EXPECT_EQ(fresh(elements_, mask_).abs().max().item<double>(), 0);
}

TEST_F(NetworkTest, BeginsAsTheSeedSays) {
  auto first_weights = [](std::uint64_t seed) {
    return SetNetwork({.inputs = kInputs, .width = 8}, seed,
                      at::TensorOptions(at::kDouble))
        .parameters()[0]
        .value.detach();
  };
  EXPECT_EQ(farthest(first_weights(1), first_weights(1)), 0);
  EXPECT_GT(farthest(first_weights(1), first_weights(2)), 0.01);
  EXPECT_LE(first_weights(1).abs().max().item<double>(), 1);  // sqrt(3 / 3)
}

TEST_F(NetworkTest, EveryParameterHasANameOfItsOwn) {
  std::vector<std::string> names;
  for (const Parameter& parameter : network_.parameters())
    names.push_back(parameter.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_EQ(names.size(), 28u);
}

}  // namespace
}  // namespace penstock
