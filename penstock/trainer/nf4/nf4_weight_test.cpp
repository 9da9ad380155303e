#include "penstock/trainer/nf4/nf4_weight.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/trainer/autocast.h"
#include "penstock/trainer/memory_use.h"
#include "penstock/trainer/nf4/nf4_kernels.h"
#include "penstock/trainer/nf4/nf4_linear.h"

namespace penstock {
namespace {

using testing::HasSubstr;

at::Tensor waves(std::int64_t rows, std::int64_t width) {
  return at::arange(rows * width, at::kFloat).sin().reshape({rows, width});
}

std::shared_ptr<const Nf4Weight> four_bits(const at::Tensor& weight,
                                           bool nested = true) {
  return std::make_shared<const Nf4Weight>(
      nf4_weight(weight, nested, at::kCPU));
}

TEST(Nf4Weight, HasTheSameBitsByOperationsAsByItsDefinition) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (bool nested : {false, true}) {
      // 157 blocks of which the last is partial; more scales than one block
      // has.
      const Nf4Weight weight =
          nf4_weight(waves(401, 99).to(type), nested, at::kCPU);
      const at::Tensor expected = dequantized(weight);
      EXPECT_EQ(expected.scalar_type(), type);
      EXPECT_TRUE(dequantized_by_operations(weight).equal(expected));
      EXPECT_LT(
          (expected.to(at::kFloat) - waves(401, 99)).abs().max().item<float>(),
          0.16F);
    }
}

TEST(Nf4Weight, TakesLittleMoreThanFourBits) {
  const at::Tensor weight = waves(512, 512);
  const double halves = 2.0 * static_cast<double>(weight.numel());
  EXPECT_LT(static_cast<double>(four_bits(weight)->bytes()), 0.265 * halves);
  EXPECT_GT(static_cast<double>(four_bits(weight, false)->bytes()),
            0.28 * halves);
}

TEST(Nf4Linear, GivesWhatItsDequantisedWeightGives) {
  const auto weight = four_bits(waves(24, 40));
  const at::Tensor bias = waves(1, 24).reshape({24});
  at::Tensor x = waves(6, 40).reshape({2, 3, 40}).requires_grad_();
  at::Tensor same = x.detach().clone().requires_grad_();
  at::Tensor found = nf4_linear(x, weight, bias, at::kFloat);
  at::Tensor expected = at::linear(same, dequantized(*weight), bias);
  EXPECT_TRUE(found.equal(expected));
  found.square().sum().backward();
  expected.square().sum().backward();
  EXPECT_LT((x.grad() - same.grad()).abs().max().item<float>(), 1e-4);
}

TEST(Nf4Linear, ComputesInTheTypeThatItIsTold) {
  const auto weight = four_bits(waves(24, 40));
  at::Tensor x = waves(6, 40).requires_grad_();
  const Autocast cast(at::kCPU, Dtype::bfloat16);
  at::Tensor exact = nf4_linear(x, weight, {}, at::kFloat);
  EXPECT_EQ(exact.scalar_type(), at::kFloat);
  EXPECT_EQ(nf4_linear(x, weight, {}, at::kHalf).scalar_type(), at::kHalf);
  exact.sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), at::kFloat);
}

// Each dequantised weight is larger than all else together.
TEST(Nf4Linear, NeverHoldsMoreThanOneDequantisedWeight) {
  constexpr std::int64_t kWidth = 256, kLayers = 8;
  std::vector<std::shared_ptr<const Nf4Weight>> weights;
  for (std::int64_t i = 0; i < kLayers; ++i)
    weights.push_back(four_bits(waves(kWidth, kWidth) / 256));
  at::Tensor input = waves(2, kWidth).requires_grad_();
  const std::int64_t one = kWidth * kWidth * 4;
  const auto forwards = [&](auto linear) {
    at::Tensor x = input;
    for (const auto& weight : weights) x = linear(x, weight);
    return x.sum();
  };
  const std::int64_t ours = most_held(at::kCPU, [&] {
    forwards([](const at::Tensor& x, const auto& weight) {
      return nf4_linear(x, weight, {}, at::kFloat);
    }).backward();
  });
  EXPECT_GE(ours, one);
  EXPECT_LT(ours, 2 * one);
  input.mutable_grad().reset();
  const std::int64_t plain = most_held(at::kCPU, [&] {
    forwards([](const at::Tensor& x, const auto& weight) {
      return at::linear(x, dequantized(*weight));
    }).backward();
  });
  EXPECT_GT(plain, kLayers * one);
}

TEST(Nf4Kernels, ThatAreMissingAreNamed) {
  auto refusal = [](const std::string& library) -> std::string {
    try {
      open_nf4_kernels(library);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      EXPECT_EQ(error.parts().code, "trainer.nf4_kernels");
      return error.what();
    }
    return "nothing was refused";
  };
  EXPECT_THAT(refusal("/nowhere/libbitsandbytes_cuda130.so"),
              HasSubstr("/nowhere/libbitsandbytes_cuda130.so"));
  EXPECT_THAT(refusal("libm.so.6"),
              HasSubstr("has no cdequantize_blockwise_fp32_nf4"));
}

/// Kernels that are right, or mix up the signs.
class FakeKernels final : public Nf4Kernels {
 public:
  explicit FakeKernels(double sign) : sign_(sign) {}
  at::Tensor dequantized(const Nf4Weight& weight) const override {
    return dequantized_by_operations(weight) * sign_;
  }

 private:
  double sign_;
};

TEST(Nf4Kernels, AreUsedOnlyIfTheyGiveTheBitsOfTheDefinition) {
  EXPECT_EQ(other_bits(FakeKernels(1), at::kCPU), "");
  EXPECT_THAT(other_bits(FakeKernels(-1), at::kCPU),
              HasSubstr("other bits than the definition"));
}

}  // namespace
}  // namespace penstock
