#include "penstock/trainer/graphs/step_graphs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/fake/rerun_graph.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// y = sum of w x over some rows, each as wide as w, with noise that is drawn.
class StepGraphsTest : public testing::Test {
 protected:
  static constexpr std::int64_t kWidth = 3;

  StepGraphsTest() { weight_.requires_grad_(); }

  StepGraphs graphs(bool on = true) {
    return {on ? graph_maker(at::kCPU).make : nullptr, *device_, at::kCPU,
            gradients_, queue_};
  }

  /// The loss of a pass over `x`, and its gradient.
  std::pair<float, at::Tensor> pass(StepGraphs& graphs, const at::Tensor& x,
                                    std::int64_t share = 1, bool keep = false) {
    std::vector<SampleId> ids;
    for (std::int64_t row = 0; row < x.size(0); ++row) ids.push_back(row + 5);
    const BatchRows of(x.size(0), {{"x", view_of(x)}}, ids);
    const MeanLoss loss = graphs.take(
        of, {.epoch = 2, .ids = ids, .staging = staging_, .stream = *stream_},
        {.share = share}, keep,
        [this, share](const BatchRows& some, const DrawnFor& drawn_for) {
          return learned(some, drawn_for, share);
        });
    return {loss.mean.item<float>(), weight_.grad()};
  }

  MeanLoss learned(const BatchRows& of, const DrawnFor& drawn_for,
                   std::int64_t share) {
    const at::Tensor x = tensor_of(of, "x");
    const at::Tensor noise = drawn(
        x, kWidth, 7, drawn_for, 1, [](Random& random, std::span<float> row) {
          for (float& one : row) one = static_cast<float>(random.normal());
        });
    const at::Tensor loss = ((x + noise) * weight_).sum() / share;
    loss.backward();
    return {loss.detach(), at::ones({})};
  }

  static TensorView view_of(const at::Tensor& x) {
    return {.data = static_cast<std::byte*>(x.mutable_data_ptr()),
            .dtype = Dtype::float32,
            .shape = {x.size(0), x.size(1)}};
  }

  /// Random numbers, in the same memory each time: a shape of rows has its
  /// alignment, too.
  at::Tensor rows(std::int64_t count, int place = 0) {
    return memory_[place].slice(0, 0, count).normal_();
  }

  void expect_same(StepGraphs& some, const at::Tensor& x,
                   std::int64_t share = 1) {
    StepGraphs none = graphs(false);
    weight_.mutable_grad().reset();
    const auto [loss, gradient] = pass(none, x, share);
    weight_.mutable_grad().reset();
    const auto [same_loss, same_gradient] = pass(some, x, share);
    EXPECT_EQ(same_loss, loss);
    EXPECT_TRUE(same_gradient.equal(gradient));
  }

  const GraphsOnCpu on_cpu_;
  const std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  const std::unique_ptr<Stream> stream_ = device_->make_stream();
  Staging staging_{*device_, 2};
  const BackwardQueue queue_{at::kCPU};
  at::Tensor weight_ = at::ones({kWidth});
  Gradients gradients_{{{"w", weight_}}};
  at::Tensor memory_[2]{at::ones({16, kWidth}), at::ones({16, kWidth})};
};

TEST_F(StepGraphsTest, ReadsEachBatchAndDrawsForIt) {
  StepGraphs some = graphs();
  for (int i = 0; i < 10; ++i) expect_same(some, rows(4));
  EXPECT_EQ(some.graphs(), 1);
  EXPECT_EQ(RerunGraph::counts().recorded, 1);
  EXPECT_EQ(RerunGraph::counts().replayed, 10 - StepGraphs::kWarmUps);
}

TEST_F(StepGraphsTest, WhatIsKeptOutlivesTheNextReplayAndGradientsAddUp) {
  StepGraphs some = graphs();
  const at::Tensor one = rows(4), other = rows(4, 1);
  for (int i = 0; i < 5; ++i) expect_same(some, one), expect_same(some, other);
  StepGraphs none = graphs(false);
  weight_.mutable_grad().reset();
  const at::Tensor first = pass(none, one).second.clone();
  const at::Tensor sum = pass(none, other).second.clone();
  weight_.mutable_grad().reset();
  const at::Tensor kept = pass(some, one, 1, /*keep=*/true).second;
  weight_.mutable_grad().reset();
  pass(some, other);
  EXPECT_TRUE(kept.equal(first));
  weight_.mutable_grad().reset();
  pass(some, one, 1, /*keep=*/true);
  EXPECT_TRUE(pass(some, other, 1, /*keep=*/true).second.equal(sum));
}

TEST_F(StepGraphsTest, TheNinthShapeIsPassedWithoutAGraph) {
  StepGraphs some = graphs();
  for (std::int64_t count = 1; count <= 9; ++count)
    for (int i = 0; i < 5; ++i) expect_same(some, rows(count));
  EXPECT_EQ(some.graphs(), 8);
  const int replayed = RerunGraph::counts().replayed;
  expect_same(some, rows(9));
  EXPECT_EQ(RerunGraph::counts().replayed, replayed);
  expect_same(some, rows(8));
  EXPECT_EQ(RerunGraph::counts().replayed, replayed + 1);
}

TEST_F(StepGraphsTest, WeightAndAlignmentMakeAnotherShape) {
  StepGraphs some = graphs();
  const at::Tensor x = at::randn({64, kWidth});
  for (int i = 0; i < 5; ++i) {
    expect_same(some, x.slice(0, 0, 4));
    expect_same(some, x.slice(0, 0, 4), 2);
    expect_same(some, x.slice(0, 1, 5));
  }
  EXPECT_EQ(some.graphs(), 3);
  const RowsShape shape = shape_of({4, {{"x", view_of(x)}}, {}});
  RowsShape moved = shape;
  moved.tensors[0].place = shape.tensors[0].place + 12;
  EXPECT_NE(shape, moved);
}

TEST_F(StepGraphsTest, CopiesKeepTheAlignmentOfTheBatch) {
  const at::Tensor x = at::randn({64, kWidth});
  for (std::int64_t row = 0; row < 40; row += 13) {
    const at::Tensor part = x.slice(0, row, row + 4);
    const BatchRows some(4, {{"x", view_of(part)}}, {});
    const FixedRows fixed(some);
    fixed.copy(some);
    EXPECT_EQ(shape_of(fixed.rows()), shape_of(some));
    EXPECT_TRUE(tensor_of(fixed.rows(), "x").equal(part));
  }
}

TEST_F(StepGraphsTest, ARecordingThatFailsEndsThemAndThePassIsTaken) {
  for (const bool memory : {false, true}) {
    const GraphsOnCpu again;
    RerunGraph::counts().failing = 2;
    RerunGraph::counts().short_of_memory = memory;
    StepGraphs some = graphs();
    for (int i = 0; i < 5; ++i) expect_same(some, rows(4));
    EXPECT_EQ(RerunGraph::counts().alive, 1);
    for (int i = 0; i < 5; ++i) expect_same(some, rows(5));
    EXPECT_FALSE(some.on());
    EXPECT_EQ(RerunGraph::counts().alive, 0);
    EXPECT_THAT(some.ended(), HasSubstr(memory ? "no memory for a graph"
                                               : "stream is capturing"));
    expect_same(some, rows(4));
  }
}

TEST_F(StepGraphsTest, AReplayThatFailsEndsThemAndLeavesEarlierGradients) {
  RerunGraph::counts().failing_replay = 3;
  StepGraphs some = graphs(), none = graphs(false);
  const at::Tensor x = rows(4);
  for (int i = 0; i < 8; ++i) pass(none, x, 1, /*keep=*/true);
  const at::Tensor sum = weight_.grad().clone();
  weight_.mutable_grad().reset();
  for (int i = 0; i < 8; ++i) pass(some, x, 1, /*keep=*/true);
  EXPECT_TRUE(weight_.grad().equal(sum));
  EXPECT_FALSE(some.on());
}

TEST_F(StepGraphsTest, CountTheMemoryOfTheirPools) {
  RerunGraph::counts().pool_bytes = 1000;
  StepGraphs some = graphs();
  for (std::int64_t count = 1; count <= 2; ++count)
    for (int i = 0; i < 4; ++i) pass(some, rows(count));
  EXPECT_EQ(some.bytes(), 2000);
  some.end("the test ends");
  EXPECT_EQ(some.bytes(), 0);
  EXPECT_EQ(some.ended(), "the test ends");
}

}  // namespace
}  // namespace penstock
