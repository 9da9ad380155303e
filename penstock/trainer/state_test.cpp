#include "penstock/trainer/state.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace penstock {
namespace {

using testing::HasSubstr;

std::vector<Parameter> some_tensors() {
  return {{"a", at::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({2, 2})},
          {"b", at::tensor({5.0})},
          {"c", at::tensor({6, 7}, at::kLong)}};
}

std::vector<Parameter> empty_tensors() {
  return {{"a", at::zeros({2, 2})},
          {"b", at::zeros({1}, at::kDouble)},
          {"c", at::zeros({2}, at::kLong)}};
}

std::string refusal(const ModelState& state,
                    const std::vector<Parameter>& tensors) {
  try {
    copy_state(state, tensors);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "resume.other_model");
    return error.what();
  }
  return "nothing was thrown";
}

TEST(State, ComesBackAsItWas) {
  std::vector<Parameter> from = some_tensors(), to = empty_tensors();
  copy_state(state_of(from), to);
  for (std::size_t i = 0; i < from.size(); ++i)
    EXPECT_TRUE(from[i].value.equal(to[i].value)) << from[i].name;
}

TEST(State, IsACopyThatCanBeMoved) {
  std::vector<Parameter> tensors = some_tensors();
  ModelState state = state_of(tensors);
  tensors[0].value.zero_();
  ModelState moved = std::move(state);
  ASSERT_EQ(moved.tensors.size(), 3u);
  EXPECT_EQ(moved.tensors[0].name, "a");
  EXPECT_EQ(moved.tensors[0].view.shape, (Shape{2, 2}));
  EXPECT_EQ(moved.tensors[0].view.dtype, Dtype::float32);
  EXPECT_EQ(reinterpret_cast<float*>(moved.tensors[0].view.data)[3], 4);
  EXPECT_EQ(moved.tensors[2].view.dtype, Dtype::int64);
}

TEST(State, GoesByNameInAnyOrder) {
  ModelState state = state_of(some_tensors());
  std::ranges::reverse(state.tensors);
  std::vector<Parameter> to = empty_tensors();
  copy_state(state, to);
  EXPECT_EQ(to[1].value.item<double>(), 5);
}

TEST(State, ThatLacksATensorIsRefused) {
  ModelState state = state_of(some_tensors());
  state.tensors.pop_back();
  EXPECT_THAT(refusal(state, empty_tensors()), HasSubstr("'c'"));
}

TEST(State, WithATensorMoreIsRefused) {
  std::vector<Parameter> tensors = some_tensors();
  tensors.push_back({"more", at::zeros({1})});
  EXPECT_THAT(refusal(state_of(tensors), empty_tensors()), HasSubstr("'more'"));
}

TEST(State, OfAnotherShapeIsRefusedAndChangesNothing) {
  std::vector<Parameter> to = empty_tensors();
  to[2].value = at::zeros({3}, at::kLong);
  EXPECT_THAT(refusal(state_of(some_tensors()), to),
              HasSubstr("found int64 [2], expected int64 [3]"));
  EXPECT_EQ(to[0].value.abs().max().item<float>(), 0);
}

TEST(State, OfAnotherTypeIsRefused) {
  std::vector<Parameter> to = empty_tensors();
  to[0].value = at::zeros({2, 2}, at::kDouble);
  EXPECT_THAT(refusal(state_of(some_tensors()), to),
              HasSubstr("found float32 [2, 2], expected float64 [2, 2]"));
}

}  // namespace
}  // namespace penstock
