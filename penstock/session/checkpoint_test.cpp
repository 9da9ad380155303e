#include "penstock/session/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "penstock/base/temporary.h"
#include "penstock/demo/fake/positions_run.h"
#include "penstock/session/not_finite.h"
#include "penstock/session/weights.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// A model of one number.
ModelState model_of(std::int64_t number) {
  ModelState model;
  model.memory.resize(8);
  std::memcpy(model.memory.data(), &number, 8);
  model.tensors.push_back(
      {"n",
       {.data = model.memory.data(), .dtype = Dtype::int64, .shape = {1}}});
  model.json["number"] = number;
  return model;
}

std::int64_t number_of(const ModelState& model) {
  std::int64_t number = 0;
  std::memcpy(&number, model.tensors.at(0).view.data, 8);
  EXPECT_EQ(model.json.find("number")->integer(), number);
  return number;
}

class CheckpointsTest : public testing::Test {
 protected:
  void save(std::int64_t steps) {
    ModelState model = model_of(100 + steps);
    checkpoints_.save({.position = {.epoch = 0, .step = steps},
                       .steps_taken = steps,
                       .fingerprint = "f"},
                      &model);
  }
  std::filesystem::path file(std::int64_t steps) const {
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path())) {
      std::string name = entry.path().filename().string();
      if (name.ends_with(std::to_string(steps) + ".safetensors"))
        return entry.path();
    }
    return {};
  }
  Resumption resumed() const {
    return read_resumption(folder_.path().string());
  }

  PositionsRun run_;
  RunFolder folder_{real_files(), run_.path("runs"), Json(Json::Object{})};
  Checkpoints checkpoints_{folder_};
};

TEST_F(CheckpointsTest, ModelAndPositionComeBackTogether) {
  save(1);
  save(22);
  Resumption from = resumed();
  EXPECT_EQ(from.state.position, (Position{0, 22}));
  EXPECT_EQ(number_of(*from.model), 122);
  EXPECT_EQ(from.warning, "");
}

TEST_F(CheckpointsTest, WithoutAModelOnlyThePositionIsSaved) {
  checkpoints_.save({.position = {2, 5}, .steps_taken = 7, .fingerprint = "f"},
                    nullptr);
  Resumption from = resumed();
  EXPECT_EQ(from.state.position, (Position{2, 5}));
  EXPECT_FALSE(from.model.has_value());
}

TEST_F(CheckpointsTest, OnlyTheTwoNewestModelsAreKept) {
  for (std::int64_t steps : {1, 22, 333, 4444}) save(steps);
  EXPECT_EQ(file(1), "");
  EXPECT_EQ(file(22), "");
  EXPECT_NE(file(333), "");
  EXPECT_NE(file(4444), "");
}

TEST_F(CheckpointsTest, SavingTheSameStepTwiceKeepsTheOneBefore) {
  for (std::int64_t steps : {1, 22, 22, 22}) save(steps);
  EXPECT_NE(file(1), "");
  EXPECT_EQ(number_of(*resumed().model), 122);
}

// A crash between the two files: the newer model is there, not yet committed.
TEST_F(CheckpointsTest, WhatWasNotCommittedIsNotSeen) {
  save(1);
  std::string committed = real_files().read(folder_.path() / "state.json");
  save(22);
  real_files().write_atomic(folder_.path() / "state.json", committed);
  EXPECT_EQ(number_of(*resumed().model), 101);
}

TEST_F(CheckpointsTest, ADamagedOneFallsBackToTheOneBeforeAndSaysSo) {
  save(1);
  save(22);
  std::string bytes = real_files().read(file(22));
  bytes.back() ^= 1;
  real_files().write_atomic(file(22), bytes);
  Resumption from = resumed();
  EXPECT_EQ(from.state.steps_taken, 1);
  EXPECT_EQ(number_of(*from.model), 101);
  EXPECT_THAT(from.warning, HasSubstr("22.safetensors"));
  EXPECT_THAT(from.warning, HasSubstr("SHA-256"));
}

/// A run that keeps its best weights, of one number each.
class BestWeightsTest : public testing::Test {
 protected:
  /// A commit after so many steps; `best`: the steps after which the best
  /// weights were validated.
  void save(Checkpoints& to, std::int64_t steps, std::int64_t best) {
    ModelState model = weights_of(steps);
    to.save({.steps_taken = steps,
             .fingerprint = "f",
             .best = Best{.step = best, .metric = "loss", .value = 0.5}},
            &model);
  }
  static ModelState weights_of(std::int64_t number) {
    ModelState model = model_of(number);
    model.tensors[0].name = "model.n";
    return model;
  }
  static std::string file_of(std::int64_t number) {
    return weights_file(weights_of(number));
  }
  std::filesystem::path file(const std::string& name) const {
    return folder_.path() / "weights" / (name + ".safetensors");
  }
  Resumption resumed() const {
    return read_resumption(folder_.path().string());
  }

  PositionsRun run_;
  RunFolder folder_{real_files(), run_.path("runs"), Json(Json::Object{})};
  Checkpoints checkpoints_{folder_, true};
};

TEST_F(BestWeightsTest, TheyAreThoseOfTheStepThatWasValidated) {
  save(checkpoints_, 10, 10);
  save(checkpoints_, 20, 10);
  EXPECT_EQ(real_files().read(file("best")), file_of(10));
  EXPECT_EQ(resumed().best, file_of(10));
  save(checkpoints_, 30, 30);
  const Resumption from = resumed();
  EXPECT_EQ(from.best, file_of(30));
  EXPECT_EQ(from.state.best->step, 30);
  EXPECT_EQ(from.state.best->sha256, checkpoints_.newest()->best->sha256);
  EXPECT_EQ(real_files().read(file("best-before")), file_of(10));
}

// A crash between the two files: the newer weights are there, not committed.
TEST_F(BestWeightsTest, ANewerFileThanTheCommitDescribesIsNotBelieved) {
  save(checkpoints_, 10, 10);
  const std::string committed =
      real_files().read(folder_.path() / "state.json");
  save(checkpoints_, 20, 20);
  real_files().write_atomic(folder_.path() / "state.json", committed);
  EXPECT_EQ(resumed().best, file_of(10));
}

TEST_F(BestWeightsTest, TheCommitBeforeHasItsOwn) {
  for (std::int64_t steps : {10, 20, 30}) save(checkpoints_, steps, steps);
  std::filesystem::remove(folder_.path() /
                          "checkpoint-000000000030.safetensors");
  const Resumption from = resumed();
  EXPECT_EQ(from.state.steps_taken, 20);
  EXPECT_EQ(from.best, file_of(20));
}

TEST_F(BestWeightsTest, WithoutThemARunIsNotResumedAndTheFileIsNamed) {
  save(checkpoints_, 10, 10);
  real_files().write_atomic(file("best"), file_of(11));
  for (const char* why : {"SHA-256", "No such file"}) {
    try {
      resumed();
      FAIL() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "resume.damaged_checkpoint");
      EXPECT_THAT(error.parts().where, HasSubstr("weights/best.safetensors"));
      EXPECT_THAT(error.parts().why, HasSubstr(why));
    }
    std::filesystem::remove(file("best"));
  }
}

TEST_F(BestWeightsTest, ARunThatIsResumedBringsThemAlong) {
  save(checkpoints_, 10, 10);
  Resumption from = resumed();
  RunFolder next(real_files(), run_.path("runs"), Json(Json::Object{}));
  Checkpoints there(next, true);
  there.save_best(*from.best, from.state);
  there.save(from.state, &*from.model);
  save(there, 20, 10);
  EXPECT_EQ(read_resumption(next.path().string()).best, file_of(10));
  save(there, 30, 30);
  EXPECT_EQ(read_resumption(next.path().string()).best, file_of(30));
}

TEST_F(BestWeightsTest, AFailedCommitIsNotWhatTheNextOneDescribes) {
  save(checkpoints_, 10, 10);
  const auto taken = folder_.path() / "checkpoint-000000000020.safetensors";
  std::filesystem::create_directories(taken / "x");
  EXPECT_THROW(save(checkpoints_, 20, 20), Error);
  EXPECT_EQ(resumed().best, file_of(10));
  // The model has moved on: the weights of step 20 are gone.
  save(checkpoints_, 25, 20);
  const Resumption from = resumed();
  EXPECT_EQ(from.state.best->step, 10);
  EXPECT_EQ(from.best, file_of(10));
}

TEST_F(BestWeightsTest, AJobThatKeepsTheLastWeightsKeepsTheNumberAlone) {
  Checkpoints last(folder_);
  save(last, 10, 10);
  const Resumption from = resumed();
  EXPECT_EQ(from.state.best->value, 0.5);
  EXPECT_EQ(from.best, std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(file("best")));
}

TEST_F(CheckpointsTest, WhenAllAreGoneTheErrorNamesTheFile) {
  save(1);
  save(22);
  std::filesystem::remove(file(1));
  std::filesystem::remove(file(22));
  try {
    resumed();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "resume.damaged_checkpoint");
    EXPECT_THAT(error.parts().where, HasSubstr(".safetensors"));
  }
}

TEST_F(CheckpointsTest, WhenTheOneBeforeCannotBeReadTheNewestIsStillTaken) {
  save(1);
  save(22);
  std::filesystem::path path = folder_.path() / "state.json";
  Json state = Json::parse(real_files().read(path), path.string());
  state["before"]["epoch"] = -1;
  real_files().write_atomic(path, state.dump());
  EXPECT_EQ(number_of(*resumed().model), 122);
  std::filesystem::remove(file(22));
  try {
    resumed();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "resume.damaged_checkpoint");
    EXPECT_THAT(error.parts().where, HasSubstr("22.safetensors"));
  }
}

/// A model of one tensor, of four bytes.
ModelState model_with(std::uint32_t bits, Dtype dtype, std::string name) {
  ModelState model;
  model.memory.resize(4);
  std::memcpy(model.memory.data(), &bits, 4);
  const auto numbers = static_cast<std::int64_t>(4 / size_of(dtype));
  model.tensors.push_back(
      {std::move(name),
       {.data = model.memory.data(), .dtype = dtype, .shape = {numbers}}});
  model.json = Json::Object{};
  return model;
}

TEST_F(CheckpointsTest, AValueThatIsNotANumberIsRefusedAndNothingWritten) {
  save(1);
  for (auto [bits, dtype] :
       {std::pair(0x7fc00000U, Dtype::float32),  // as hardware makes it
        std::pair(0xffc00000U, Dtype::float32),
        std::pair(0x7f800001U, Dtype::float32),
        std::pair(0x7e000000U, Dtype::float16),
        std::pair(0x00007fc0U, Dtype::bfloat16)}) {
    const ModelState model = model_with(bits, dtype, "model.running_var");
    try {
      checkpoints_.save({.steps_taken = 22, .fingerprint = "f"}, &model);
      ADD_FAILURE() << "it was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::transform);
      EXPECT_EQ(error.parts().code, "train.not_finite");
      EXPECT_EQ(error.parts().where, "step 22, tensor 'model.running_var'");
    }
  }
  EXPECT_EQ(file(22), "");
  EXPECT_EQ(number_of(*resumed().model), 101);
}

TEST_F(CheckpointsTest, InfinitiesAreNumbers) {
  for (auto [bits, dtype] : {std::pair(0x7f800000U, Dtype::float32),
                             std::pair(0xff800000U, Dtype::float32),
                             std::pair(0x7c00fc00U, Dtype::float16),
                             std::pair(0x7fc00000U, Dtype::int32)}) {
    const ModelState model = model_with(bits, dtype, "model.mask");
    checkpoints_.save({.steps_taken = 22, .fingerprint = "f"}, &model);
  }
  EXPECT_NE(file(22), "");
}

// Where the loss is scaled a gradient may overflow: its step is left out.
TEST_F(CheckpointsTest, GradientsOfAScaledLossMayOverflow) {
  ModelState model = model_with(0x7fc00000, Dtype::float32, "gradient.w");
  model.tensors.push_back(
      {"scale.since", {.dtype = Dtype::int32, .shape = {0}}});
  EXPECT_FALSE(tensor_without_number(model).has_value());
  model.tensors.pop_back();
  EXPECT_EQ(tensor_without_number(model), "gradient.w");
}

TEST_F(CheckpointsTest, WhatAKillLeftIsSwept) {
  save(1);
  auto names = [&] {
    std::vector<std::string> found;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().filename().string().find(".tmp") != std::string::npos)
        found.push_back(entry.path().filename().string());
    return found;
  };
  auto leave = [&](const std::string& name) {
    real_files().write_atomic(folder_.path() / name, "half a model");
  };
  const std::string left = "checkpoint-000000000007.safetensors.tmp.";
  leave(left + "0123456789abcdef");
  leave("checkpoint-of-mine.tmp.txt");  // not ours
  sweep_checkpoints(folder_.path());
  EXPECT_THAT(names(), testing::ElementsAre("checkpoint-of-mine.tmp.txt"));
  leave(left + "fedcba9876543210");
  save(22);
  EXPECT_THAT(names(), testing::ElementsAre("checkpoint-of-mine.tmp.txt"));
  const TemporaryFile written(folder_.path() /
                              "checkpoint-000000000033.safetensors");
  sweep_checkpoints(folder_.path());  // its writer lives
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(CheckpointsTest, AStateThatPointsOutsideItsFolderIsRefused) {
  save(1);
  std::string state = real_files().read(folder_.path() / "state.json");
  std::size_t at = state.find("checkpoint-");
  state.replace(at, 10, "../secrets");
  real_files().write_atomic(folder_.path() / "state.json", state);
  EXPECT_THROW(resumed(), Error);
}

}  // namespace
}  // namespace penstock
