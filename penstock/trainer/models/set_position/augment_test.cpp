#include "penstock/trainer/models/set_position/augment.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

namespace penstock {
namespace {

std::vector<SampleId> ids(SampleId count) {
  std::vector<SampleId> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), SampleId{0});
  return all;
}

/// On the cpu, where numbers are drawn in place.
DrawnFor rows(std::int64_t epoch, const std::vector<SampleId>& ids) {
  static const std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  static const std::unique_ptr<Stream> stream = device->make_stream();
  static Staging staging(*device, 1);
  return {epoch, ids, staging, *stream};
}

TEST(ReceiverAugment, LeavesOutItsShare) {
  ReceiverAugment augment{.dropout = 0.25, .seed = 3};
  at::Tensor mask = augment.heard(at::ones({1000, 10}), rows(0, ids(1000)));
  EXPECT_NEAR(mask.mean().item<double>(), 0.75, 0.02);
}

TEST(ReceiverAugment, BringsNothingThatIsNotThere) {
  ReceiverAugment augment{.dropout = 0.5, .seed = 3};
  at::Tensor mask = at::zeros({50, 10});
  mask.slice(1, 0, 4).fill_(1);
  at::Tensor some = augment.heard(mask, rows(0, ids(50)));
  EXPECT_EQ(some.slice(1, 4, 10).sum().item<double>(), 0);
  EXPECT_TRUE((some.eq(0) | some.eq(1)).all().item<bool>());
}

TEST(ReceiverAugment, LeavesNoRowWithoutAReceiver) {
  ReceiverAugment augment{.dropout = 0.9, .seed = 3};
  at::Tensor some = augment.heard(at::ones({500, 3}), rows(0, ids(500)));
  EXPECT_GT(some.sum(1).min().item<double>(), 0);
  at::Tensor none = at::zeros({2, 3});
  EXPECT_EQ(augment.heard(none, rows(0, ids(2))).sum().item<double>(), 0);
}

TEST(ReceiverAugment, AddsNoiseToOneKeyOfACopy) {
  ReceiverAugment augment{.noise = 0.5, .seed = 3};
  at::Tensor set = at::ones({1000, 10, 3});
  at::Tensor noisy = augment.noisy(set, 1, rows(0, ids(1000)));
  EXPECT_TRUE(set.eq(1).all().item<bool>());
  EXPECT_TRUE(noisy.select(2, 0).eq(1).all().item<bool>());
  EXPECT_TRUE(noisy.select(2, 2).eq(1).all().item<bool>());
  EXPECT_NEAR(noisy.select(2, 1).mean().item<double>(), 1, 0.02);
  EXPECT_NEAR(noisy.select(2, 1).std().item<double>(), 0.5, 0.02);
}

TEST(ReceiverAugment, DependsOnSeedEpochAndSampleAlone) {
  ReceiverAugment augment{.dropout = 0.5, .noise = 1, .seed = 3};
  at::Tensor mask = at::ones({2, 32}), set = at::zeros({2, 32, 1});
  auto both = [&](std::int64_t epoch, std::vector<SampleId> samples) {
    return augment.heard(mask, rows(epoch, samples)) +
           augment.noisy(set, 0, rows(epoch, samples)).squeeze(2);
  };
  at::Tensor one = both(7, {11, 12}), turned = both(7, {12, 11});
  EXPECT_TRUE(one[0].equal(turned[1]) && one[1].equal(turned[0]));
  EXPECT_FALSE(one.equal(both(8, {11, 12})));
  augment.seed = 4;
  EXPECT_FALSE(one.equal(both(7, {11, 12})));
}

TEST(ReceiverAugment, OfNothingCopiesNothing) {
  at::Tensor mask = at::ones({2, 3}), set = at::ones({2, 3, 4});
  EXPECT_TRUE(ReceiverAugment{}.heard(mask, rows(0, ids(2))).is_same(mask));
  EXPECT_TRUE(ReceiverAugment{}.noisy(set, 0, rows(0, ids(2))).is_same(set));
}

}  // namespace
}  // namespace penstock
