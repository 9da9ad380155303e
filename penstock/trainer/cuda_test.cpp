#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/fake/positions_model.h"
#include "penstock/trainer/ranks/c10d_group.h"

namespace penstock {
namespace {

// Sums go in another order on a GPU: the last bits of float32 differ, and ten
// steps make more of it.
constexpr double kTolerance = 1e-3;

/// Skips the test, or fails it where a GPU is required.
void no_cuda(const std::string& why) {
  const char* required = std::getenv("PENSTOCK_REQUIRE_GPU");
  if (required != nullptr && std::string_view(required) == "1")
    FAIL() << "PENSTOCK_REQUIRE_GPU=1, but " << why;
  GTEST_SKIP() << why;
}

/// A model on a device against the same model on the cpu.
class TrainedOn : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() != std::string("cuda")) return;
    // The first thing that this process asks of libtorch, or the answer is no.
    std::string why = cuda_unavailable_reason();
    if (!why.empty()) {
      no_cuda("libtorch has no CUDA: " + why);
      return;
    }
    try {
      open_device({.kind = "cuda"});
    } catch (const Error& error) {
      no_cuda(error.what());
    }
  }

  static void expect_near(double here, double on_cpu, const std::string& what) {
    EXPECT_NEAR(here, on_cpu, kTolerance * std::max(1.0, std::abs(on_cpu)))
        << what;
  }
  static void expect_near(const std::vector<double>& here,
                          std::span<const double> on_cpu) {
    ASSERT_EQ(here.size(), on_cpu.size());
    for (std::size_t i = 0; i < here.size(); ++i)
      expect_near(here[i], on_cpu[i], "loss " + std::to_string(i));
  }
  static void expect_near(const Json& here, const Json& on_cpu) {
    for (const char* key : {"val_loss", "val_median_km", "val_mean_km"})
      expect_near(here.find(key)->number(), on_cpu.find(key)->number(), key);
  }
};

// On a GPU by NCCL, where its plugin was built; else the numbers go through the
// host.
TEST_P(TrainedOn, OneRankKeepsItsNumbers) {
  const auto group =
      open_ranks({.launcher = "environment", .master = "127.0.0.1", .port = 0});
  const at::Tensor numbers = at::arange(
      1000, at::TensorOptions(at::kFloat).device(at::Device(GetParam())));
  const TensorView view = numbers_of(numbers);
  group->sum(std::span(&view, 1));
  group->copy_from_first(std::span(&view, 1));
  EXPECT_TRUE(numbers.to(at::kCPU).equal(at::arange(1000, at::kFloat)));
  if (GetParam() == std::string("cpu")) {
    EXPECT_EQ(group->facts().backend, "gloo");
  }
  group->leave();
}

TEST_P(TrainedOn, TenStepsValidationAndResumingGiveTheNumbersOfTheCpu) {
  PositionsModel here(GetParam()), cpu("cpu");
  const ModelSpec spec = PositionsModel::spec();
  auto model = here.stepper(spec), on_cpu = cpu.stepper(spec);
  expect_near(here.validate(*model), cpu.validate(*on_cpu));
  std::vector<double> losses = cpu.take(*on_cpu, 0, 10, cpu.data());
  Json validated = cpu.validate(*on_cpu);

  expect_near(here.take(*model, 0, 5, here.data()), std::span(losses).first(5));
  ModelState saved = model->save();
  expect_near(here.take(*model, 5, 10, here.data()), std::span(losses).last(5));
  expect_near(here.validate(*model), validated);

  auto resumed = here.stepper(spec);
  here.take(*resumed, 0, 3, here.data());  // all that this leaves is replaced
  resumed->restore(saved);
  expect_near(here.take(*resumed, 5, 10, here.data()),
              std::span(losses).last(5));
  expect_near(here.validate(*resumed), validated);
}

// On the cpu there are no graphs: both runs are the same there.
TEST_P(TrainedOn, GraphsGiveTheSameBits) {
  for (const std::int64_t accumulate : {1, 3}) {
    PositionsModel positions(GetParam());
    ModelSpec spec = PositionsModel::spec();
    PositionsModel::settings_of(spec).dropout = 0.3;
    PositionsModel::settings_of(spec).noise_db = 2;
    spec.learning.accumulate = accumulate;
    const auto without = positions.stepper(spec);
    spec.learning.graphs = Learning::Graphs::by_device;
    const auto with = positions.stepper(spec);
    for (std::int64_t from = 0; from < 40; from += 20) {
      EXPECT_EQ(positions.take(*with, from, from + 20, positions.data()),
                positions.take(*without, from, from + 20, positions.data()));
      EXPECT_EQ(positions.validate(*with).dump(),
                positions.validate(*without).dump());
    }
    expect_same_bits(with->save(), without->save());
    if (GetParam() == std::string("cpu")) continue;
    for (const SwitchInForce& one : with->facts().in_force) {
      if (one.name == "graphs") {
        EXPECT_EQ(one.got, Json("auto")) << one.why;
      }
    }
    EXPECT_GE(with->facts().about.find("graphs")->integer(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Device, TrainedOn, testing::Values("cpu", "cuda"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace penstock
