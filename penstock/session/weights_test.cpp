#include "penstock/session/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "penstock/session/safetensors.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// A state of tensors of floats, in the order of their names.
ModelState state_of(const std::map<std::string, std::vector<float>>& tensors) {
  ModelState state;
  std::size_t floats = 0;
  for (const auto& [name, values] : tensors) floats += values.size();
  state.memory.resize(floats * sizeof(float));
  std::byte* to = state.memory.data();
  for (const auto& [name, values] : tensors) {
    std::memcpy(to, values.data(), values.size() * sizeof(float));
    state.tensors.push_back(
        {name, {.data = to, .shape = {std::ssize(values)}}});
    to += values.size() * sizeof(float);
  }
  return state;
}

std::vector<float> values_of(const ModelState& state, const std::string& name) {
  for (const NamedTensor& tensor : state.tensors)
    if (tensor.name == name) {
      std::vector<float> values(tensor.view.bytes() / sizeof(float));
      std::memcpy(values.data(), tensor.view.data, tensor.view.bytes());
      return values;
    }
  return {};
}

class Weights : public testing::Test {
 protected:
  // Tests run beside each other, each in a process of its own.
  Weights()
      : path_(testing::TempDir() + "/weights_of_a_test_" +
              std::to_string(::getpid())) {}
  ~Weights() override { ::unlink(path_.c_str()); }
  std::string file(const std::string& bytes) {
    real_files().write_atomic(path_, bytes);
    return path_;
  }
  std::string refusal(ModelState state, const std::string& path) {
    try {
      with_weights(std::move(state), path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_EQ(error.parts().code, "model.weights");
      EXPECT_EQ(error.parts().where, path);
      return error.parts().why;
    }
    return "no error";
  }

  const std::string path_;
};

TEST_F(Weights, AreLeftUnderTheModulesOwnNamesWithoutTheOptimisers) {
  ModelState left = read_safetensors(
      weights_file(state_of({{"model.w", {1, 2}}, {"adamw.w", {3, 4}}})), "w");
  ASSERT_EQ(left.tensors.size(), 1u);
  EXPECT_EQ(left.tensors[0].name, "w");
  EXPECT_EQ(values_of(left, "w"), (std::vector<float>{1, 2}));
  EXPECT_EQ(*left.json.find("format"), Json("pt"));
}

TEST_F(Weights, ThatAreAveragedAreTheOnesToLeave) {
  ModelState left = read_safetensors(
      weights_file(
          state_of({{"ema.w", {5}}, {"model.w", {1}}, {"model.count", {7}}})),
      "w");
  EXPECT_EQ(values_of(left, "w"), std::vector<float>{5});
  EXPECT_EQ(values_of(left, "count"), std::vector<float>{7});
}

TEST_F(Weights, OfAFileReplaceThoseOfAStateAndNothingElse) {
  const std::string path =
      file(weights_file(state_of({{"model.w", {1, 2}}, {"model.v", {3}}})));
  ModelState begun = with_weights(state_of({{"adamw.w", {9, 9}},
                                            {"ema.w", {0, 0}},
                                            {"model.v", {0}},
                                            {"model.w", {0, 0}}}),
                                  path);
  EXPECT_EQ(values_of(begun, "model.w"), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(begun, "ema.w"), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(begun, "model.v"), std::vector<float>{3});
  EXPECT_EQ(values_of(begun, "adamw.w"), (std::vector<float>{9, 9}));
}

TEST_F(Weights, OfACheckpointAreFoundAmongAllElse) {
  ModelState checkpoint = state_of({{"adamw.w", {9}}, {"model.w", {4}}});
  Json remarks;
  remarks[kModelRemark] = "{}";
  const std::string path = file(safetensors(checkpoint.tensors, remarks));
  ModelState begun = with_weights(state_of({{"model.w", {0}}}), path);
  EXPECT_EQ(values_of(begun, "model.w"), std::vector<float>{4});
}

TEST_F(Weights, ThatDoNotFitAreRefusedByName) {
  const std::string path = file(weights_file(state_of({{"model.w", {1, 2}}})));
  EXPECT_THAT(refusal(state_of({{"model.w", {0, 0}}, {"model.v", {0}}}), path),
              HasSubstr("has no tensor 'v'"));
  EXPECT_THAT(refusal(state_of({{"model.w", {0, 0, 0}}}), path),
              HasSubstr("tensor 'w' is float32 [2], expected float32 [3]"));
  EXPECT_THAT(refusal(state_of({{"model.u", {0}}}), path),
              HasSubstr("file has no tensor 'u'"));
  EXPECT_THAT(refusal(state_of({{"adamw.w", {0}}}), path),
              HasSubstr("the model has no tensor 'w'"));
  EXPECT_THAT(refusal(state_of({{"model.w", {0, 0}}}), "/nowhere/w"),
              HasSubstr("No such file"));
}

}  // namespace
}  // namespace penstock
