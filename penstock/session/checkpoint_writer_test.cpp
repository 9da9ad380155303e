#include "penstock/session/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/session/not_finite.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class CheckpointWriterTest : public testing::Test {
 protected:
  static ModelState model(float value, std::vector<std::byte> memory = {}) {
    ModelState state;
    state.memory = std::move(memory);
    state.memory.resize(4096 * sizeof(float));
    for (std::size_t i = 0; i < 4096; ++i)
      std::memcpy(state.memory.data() + 4 * i, &value, 4);
    state.tensors.push_back({"w",
                             {.data = state.memory.data(),
                              .dtype = Dtype::float32,
                              .shape = {4096}}});
    state.json = Json::Object{};
    return state;
  }
  static SavedState state(std::int64_t steps) {
    return {.position = {.epoch = 0, .step = steps},
            .steps_taken = steps,
            .fingerprint = "f"};
  }
  static float first(const ModelState& model) {
    float value = 0;
    std::memcpy(&value, model.tensors.at(0).view.data, 4);
    return value;
  }
  Resumption resumed() const {
    return read_resumption(folder_.path().string());
  }

  PositionsRun run_;
  RunFolder folder_{real_files(), run_.path("runs"), Json(Json::Object{})};
  Checkpoints checkpoints_{folder_};
};

TEST_F(CheckpointWriterTest, WhatWasBegunIsThereAfterTheWait) {
  CheckpointWriter writer(checkpoints_);
  writer.begin(state(1), model(1));
  writer.wait();
  EXPECT_FALSE(writer.busy());
  EXPECT_EQ(resumed().state.steps_taken, 1);
  EXPECT_EQ(first(*resumed().model), 1);
  EXPECT_GT(writer.writing().count(), 0);
}

TEST_F(CheckpointWriterTest, TheMemoryOfACopyIsUsedForTheNextOne) {
  CheckpointWriter writer(checkpoints_);
  ModelState one = model(1);
  const std::byte* memory = one.memory.data();
  writer.begin(state(1), std::move(one));
  writer.wait();
  ModelState two = model(2, writer.spare());
  EXPECT_EQ(two.memory.data(), memory);
  writer.begin(state(2), std::move(two));
  writer.wait();
  EXPECT_EQ(first(*resumed().model), 2);
}

TEST_F(CheckpointWriterTest, ItsBytesAreAccountedFor) {
  auto held = [] {
    for (const HeldMemory& one : held_memory())
      if (one.owner == HeldFor::checkpoints && one.place == HeldIn::host)
        return one.bytes;
    return std::size_t{0};
  };
  const std::size_t before = held();
  {
    CheckpointWriter writer(checkpoints_);
    writer.begin(state(1), model(1));
    EXPECT_EQ(held(), before + 4096 * sizeof(float));
  }
  EXPECT_EQ(held(), before);
}

TEST_F(CheckpointWriterTest, TheEndWaitsForWhatIsBeingWritten) {
  { CheckpointWriter(checkpoints_).begin(state(7), model(7)); }
  EXPECT_EQ(resumed().state.steps_taken, 7);
}

TEST_F(CheckpointWriterTest, AFailureIsToldOnceAndTheNextOneIsWritten) {
  CheckpointWriter writer(checkpoints_);
  writer.begin(state(1), model(std::nanf("")));
  try {
    writer.wait();
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, kNotFinite);
    EXPECT_THAT(error.parts().where, HasSubstr("tensor 'w'"));
  }
  EXPECT_NO_THROW(writer.check());
  writer.begin(state(2), model(2));
  writer.wait();
  EXPECT_EQ(resumed().state.steps_taken, 2);
}

}  // namespace
}  // namespace penstock
