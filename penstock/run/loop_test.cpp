#include "penstock/run/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/report/report.h"

namespace penstock {
namespace {

/// A model that counts what it is shown, and may ask for the end or fail.
struct CountingStepper : Stepper {
  struct Trouble {
    int stop_at_look = -1;  ///< asks for the end in this look at held-out rows
    int fail_at_step = -1;  ///< has no memory for this step
    int full_at_step = -1;  ///< once: the device has no memory for it
    int stop_error_at_look =
        -1;                 ///< throws a stop's error that nobody asked for
    std::size_t bytes = 0;  ///< of its weights
    int look_ms = 0;        ///< a look at held-out rows takes so long
  };
  CountingStepper() : CountingStepper(Trouble()) {}
  explicit CountingStepper(Trouble made)
      : Stepper({.takes_time = false, .has_model = true}), trouble(made) {}

  Trouble trouble;
  std::atomic<bool>* stop = nullptr;
  int steps = 0, told = 0, looks = 0;

  std::vector<double> losses(bool) override {
    return std::vector<double>(
        static_cast<std::size_t>(steps - std::exchange(told, steps)));
  }
  void step(const std::shared_ptr<Batch>&, Stream&, std::int64_t) override {
    if (steps == trouble.fail_at_step) throw std::bad_alloc();
    if (steps == trouble.full_at_step) {
      trouble.full_at_step = -1;
      throw Error(ErrorKind::out_of_memory, {.what = "the device is full"});
    }
    ++steps;
  }
  void validate(const std::shared_ptr<Batch>&, Stream&) override {
    std::atomic<bool> asked{true};
    if (looks == trouble.stop_error_at_look) end_if_stopped(&asked);
    if (looks++ == trouble.stop_at_look) *stop = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(trouble.look_ms));
  }
  Validated validated() override {
    Validated found;
    found.metrics["val_loss"] = looks;
    found.details["looks"] = looks;
    return found;
  }

 private:
  ModelState state_in(std::vector<std::byte> memory) override {
    ModelState state{.tensors = {}, .memory = std::move(memory), .json = {}};
    state.json = Json::Object{};
    state.memory.resize(trouble.bytes);
    std::ranges::fill(state.memory, static_cast<std::byte>(steps));
    const auto count = static_cast<std::int64_t>(trouble.bytes);
    state.tensors.push_back({"w",
                             {.data = state.memory.data(),
                              .dtype = Dtype::uint8,
                              .shape = {count}}});
    return state;
  }
};

/// Its first step fits after so many things were given up.
struct ShortStepper final : CountingStepper, StepMemory {
  explicit ShortStepper(int shortages) : left(shortages) { memory_ = this; }
  int left;

  void step(const std::shared_ptr<Batch>& batch, Stream& stream,
            std::int64_t number) override {
    if (left-- > 0) throw Error(ErrorKind::out_of_memory, {.what = "full"});
    CountingStepper::step(batch, stream, number);
  }
  MemoryByOwner try_step(std::int64_t) override { return {}; }
  MemoryByOwner fixed() const override { return {.parameters = 8}; }
  MemoryByOwner peak() const override { return fixed(); }
  MemoryByOwner take_peak() override { return {.activations = steps}; }
  bool give_way(std::int64_t step, std::int64_t rows) override {
    if (std::exchange(gave, true)) return false;
    add({.step = step,
         .from = rows,
         .to = rows / 2,
         .action = OomAction::micro_batch});
    return true;
  }
  std::optional<std::int64_t> row_alone() const override { return 1; }
  bool gave = false;
};

/// A loop over the demo's rows: 15 steps and 4 held-out batches per epoch.
class LoopTest : public testing::Test {
 protected:
  struct Ended {
    bool all = false;
    RunNumbers numbers;
    Json report;
    std::string folder;
    SavedState saved() const { return read_resumption(folder).state; }
    Json val_loss(std::int64_t epoch) const {
      const Json* loss = numbers.epochs.at(epoch).validated.find("val_loss");
      return loss == nullptr ? Json() : *loss;
    }
  };

  Ended run(CountingStepper& stepper, SavedState state = {},
            std::vector<std::string> sets = {},
            const std::function<void(const RunFolder&)>& prepare = {}) {
    sets.push_back("train.epochs=2");
    Job job = positions_.job(sets);
    auto session = open_loader(job, {.timed = true, .state = state});
    state.fingerprint = session->rows().fingerprint();
    state.order = order_json(session->order(), job.split);
    per_epoch_ = static_cast<int>(session->steps_per_epoch());
    RunFolder folder(real_files(), job.output.dir, Json(Json::Object{}));
    if (prepare) prepare(folder);
    Checkpoints checkpoints(folder);
    Quarantine quarantine(folder);
    TrainOptions options{.stop = &stop_};
    Ended ended{.folder = folder.path().string()};
    stop_ = false;
    stepper.stop = &stop_;
    folder_ = ended.folder;
    Loop loop({.job = job,
               .options = options,
               .session = *session,
               .folder = folder,
               .stepper = stepper,
               .checkpoints = checkpoints,
               .quarantine = quarantine,
               .state = state},
              steps_in_all(job, session->order()));
    ended.all = loop.run();
    ended.numbers = session->numbers();
    ended.report = report_of(*session);
    return ended;
  }

  PositionsRun positions_;
  std::atomic<bool> stop_{false};
  std::string folder_;
  int per_epoch_ = 0;
};

TEST_F(LoopTest, KeepsTheDetailsOfTheLastValidationApartFromItsMetrics) {
  CountingStepper stepper;
  const Ended ended = run(stepper);
  EXPECT_EQ(ended.numbers.details.find("looks")->integer(), stepper.looks);
  for (const auto& [epoch, numbers] : ended.numbers.epochs)
    EXPECT_EQ(numbers.validated.object().size(), 1U) << epoch;
}

TEST_F(LoopTest, ValidatesAfterEveryEpoch) {
  CountingStepper stepper;
  Ended ended = run(stepper);
  EXPECT_TRUE(ended.all);
  EXPECT_EQ(stepper.steps, 2 * per_epoch_);
  EXPECT_GT(ended.val_loss(0).integer(), 1);
  EXPECT_EQ(ended.val_loss(1).integer(), 2 * ended.val_loss(0).integer());
  EXPECT_EQ(ended.saved().to_validate, std::nullopt);
}

TEST_F(LoopTest, StoppedInAValidationItEndsThereAndTheNumberIsUnknown) {
  CountingStepper stepper({.stop_at_look = 0});
  Ended ended = run(stepper);
  EXPECT_FALSE(ended.all);
  EXPECT_EQ(stepper.steps, per_epoch_);
  EXPECT_EQ(stepper.looks, 1);
  EXPECT_TRUE(ended.val_loss(0).is_null());
  EXPECT_EQ(ended.saved().to_validate, 0);
  EXPECT_EQ(ended.saved().position.epoch, 1);
}

TEST_F(LoopTest, TheValidationThatIsOwedComesFirstInTheResumedRun) {
  CountingStepper whole, first({.stop_at_look = 1}), rest;
  Ended all = run(whole);
  Ended ended = run(rest, run(first).saved());
  EXPECT_TRUE(ended.all);
  EXPECT_EQ(first.steps + rest.steps, whole.steps);
  EXPECT_EQ(ended.val_loss(0), all.val_loss(0));
  EXPECT_EQ(ended.val_loss(1), all.val_loss(1));
  EXPECT_EQ(ended.numbers.epochs.at(0).samples, 0);
}

TEST_F(LoopTest, StoppedInTheLastValidationItIsNotDone) {
  CountingStepper whole;
  int looks = static_cast<int>(run(whole).val_loss(0).integer());
  CountingStepper first({.stop_at_look = looks}), rest;
  Ended ended = run(first);
  EXPECT_FALSE(ended.all);
  EXPECT_EQ(first.steps, 2 * per_epoch_);
  Ended resumed = run(rest, ended.saved());
  EXPECT_TRUE(resumed.all);
  EXPECT_EQ(rest.steps, 0);
  EXPECT_EQ(resumed.val_loss(1).integer(), looks);
  EXPECT_EQ(resumed.saved().to_validate, std::nullopt);
}

TEST_F(LoopTest, ARunThatEndsInsideAnEpochValidatesThereToo) {
  CountingStepper first, rest;
  Ended ended = run(first, {}, {"train.max_steps=18"});
  ASSERT_EQ(per_epoch_, 15);
  EXPECT_TRUE(ended.all);
  EXPECT_EQ(first.steps, 18);
  EXPECT_EQ(ended.val_loss(1).integer(), 2 * ended.val_loss(0).integer());
  EXPECT_TRUE(ended.numbers.epochs.at(1).train_loss.has_value());
  EXPECT_EQ(ended.saved().to_validate, std::nullopt);
  EXPECT_EQ(ended.saved().position, (Position{.epoch = 1, .step = 3}));
  Ended more = run(rest, ended.saved());
  EXPECT_TRUE(more.all);
  EXPECT_EQ(rest.steps, 12);
  EXPECT_EQ(more.val_loss(1), ended.val_loss(0));
}

TEST_F(LoopTest, StoppedInTheValidationInsideAnEpochItIsOwed) {
  for (const char* saving : {"train.checkpoint_every_steps=null",
                             "train.checkpoint_every_steps=18"}) {
    CountingStepper first({.stop_at_look = 5}), rest, more;
    Ended ended = run(first, {}, {"train.max_steps=18", saving});
    EXPECT_FALSE(ended.all);
    EXPECT_EQ(first.steps, 18);
    EXPECT_TRUE(ended.val_loss(1).is_null());
    EXPECT_EQ(ended.saved().to_validate, 1);
    EXPECT_EQ(ended.saved().position, (Position{.epoch = 1, .step = 3}));
    Ended resumed = run(rest, ended.saved(), {"train.max_steps=18", saving});
    EXPECT_TRUE(resumed.all);
    EXPECT_EQ(rest.steps, 0);
    EXPECT_EQ(resumed.val_loss(1), ended.val_loss(0));
    EXPECT_EQ(resumed.saved().to_validate, std::nullopt);
    EXPECT_TRUE(run(more, ended.saved()).all);  // owed, and then its epoch's
    EXPECT_EQ(more.steps, 12);
    EXPECT_EQ(more.looks, 2 * ended.val_loss(0).integer());
  }
}

TEST_F(LoopTest, ValidatesAfterSoManySteps) {
  CountingStepper stepper;
  Ended ended = run(stepper, {}, {"train.validate_every_steps=6"});
  ASSERT_EQ(per_epoch_, 15);
  EXPECT_TRUE(ended.all);
  EXPECT_EQ(ended.numbers.validations, 5) << "after 6, 12, 18, 24, 30 steps";
  const std::int64_t each = ended.val_loss(1).integer() / 5;
  EXPECT_EQ(ended.val_loss(0).integer(), 2 * each) << "the last in the epoch";
  EXPECT_EQ(ended.saved().best->step, 6);
  EXPECT_EQ(ended.saved().best->since, 4);
}

TEST_F(LoopTest, TheLastStepsAreValidatedWhateverTheirNumber) {
  CountingStepper stepper;
  Ended ended = run(stepper, {}, {"train.validate_every_steps=1000"});
  EXPECT_EQ(ended.numbers.validations, 1);
  EXPECT_EQ(ended.saved().best->step, 30);
}

// The loss of each validation is higher than the one before.
TEST_F(LoopTest, EndsWhenItsPatienceDoesAndContinuesWithMore) {
  const std::string every = "train.validate_every_steps=6";
  CountingStepper stepper, again, more;
  Ended ended = run(stepper, {}, {every, "train.patience=2"});
  EXPECT_TRUE(ended.all);
  EXPECT_EQ(stepper.steps, 18);
  EXPECT_EQ(ended.numbers.epochs.at(1).samples, 3 * 32);
  EXPECT_EQ(ended.saved().position, (Position{.epoch = 1, .step = 3}));
  EXPECT_TRUE(run(again, ended.saved(), {every, "train.patience=2"}).all);
  EXPECT_EQ(again.steps, 0);
  EXPECT_TRUE(run(more, ended.saved(), {every}).all);
  EXPECT_EQ(more.steps, 12);
}

TEST_F(LoopTest, AValidationThatIsTheBestIsSavedBeforeTheNextStep) {
  CountingStepper stepper({.fail_at_step = 6});
  EXPECT_THROW(run(stepper, {},
                   {"train.validate_every_steps=5",
                    "train.checkpoint_every_steps=1000"}),
               std::bad_alloc);
  // The run saved when it ended, and before that the best.
  const Json state =
      Json::parse(real_files().read(folder_ + "/state.json"), "state.json");
  EXPECT_EQ(state.find("before")->find("steps_taken")->integer(), 5);
  EXPECT_EQ(state.find("before")->find("best")->find("step")->integer(), 5);
}

TEST_F(LoopTest, TakesTheSameFewHeldOutRowsEachTime) {
  CountingStepper stepper, whole;
  Ended few = run(stepper, {}, {"train.validate_rows=33"});
  EXPECT_EQ(few.val_loss(0).integer(), 2) << "a batch of 32 and one of 1";
  Ended all = run(whole, {}, {"train.validate_rows=1000000"});
  EXPECT_GT(all.val_loss(0).integer(), 2);
}

TEST_F(LoopTest, ACheckpointHoldsTheModelAsItWasWhenItWasDue) {
  CountingStepper stepper({.stop_at_look = 0, .bytes = 1 << 20});
  Ended ended = run(stepper, {}, {"train.checkpoint_every_steps=1"});
  EXPECT_EQ(ended.numbers.saved.times, 15);
  EXPECT_EQ(ended.numbers.saved.bytes, std::size_t{1} << 20);
  const Resumption from = read_resumption(ended.folder);
  EXPECT_EQ(from.state.steps_taken, 15);
  const TensorView& weights = from.model->tensors.at(0).view;
  EXPECT_EQ(
      std::count(weights.data, weights.data + weights.bytes(), std::byte{15}),
      1 << 20);
}

TEST_F(LoopTest, ACheckpointThatCannotBeWrittenEndsTheRun) {
  CountingStepper stepper;
  auto refused = [&](const RunFolder& folder) {
    // A folder that is not empty stands where the file shall be.
    std::filesystem::create_directories(
        folder.path() / "checkpoint-000000000004.safetensors" / "x");
  };
  try {
    run(stepper, {}, {"train.checkpoint_every_steps=2"}, refused);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "file.write");
    EXPECT_THAT(error.parts().next, testing::HasSubstr("'output.dir'"));
  }
  EXPECT_GE(stepper.steps, 4);
  EXPECT_LE(stepper.steps, 6) << "the next one that is due waits for it";
}

TEST_F(LoopTest, ARunThatWaitsForItsCheckpointsSaysSo) {
  CountingStepper stepper({.bytes = 20 << 20});
  Ended ended = run(stepper, {},
                    {"train.checkpoint_every_steps=1", "device.clock=wall",
                     "device.step_ms=1", "loader.cache=ram", "split.val=0"});
  const Json& verdict = *ended.report.find("verdict");
  EXPECT_EQ(verdict.find("limit")->string(), "outside");
  ASSERT_FALSE(verdict.find("actions")->array().empty());
  EXPECT_EQ(verdict.find("actions")->array()[0].find("knob")->string(),
            "train.checkpoint_every_steps");
  EXPECT_GT(ended.report.find("checkpoints")->find("waited")->integer(), 0);
}

TEST_F(LoopTest, ARunThatValidatesForMostOfItsTimeSaysSo) {
  CountingStepper stepper({.look_ms = 60});
  Ended ended =
      run(stepper, {},
          {"device.clock=wall", "device.step_ms=2", "loader.cache=ram"});
  const Json& verdict = *ended.report.find("verdict");
  EXPECT_EQ(verdict.find("limit")->string(), "outside");
  const Json& action = verdict.find("actions")->array().at(0);
  EXPECT_EQ(action.find("knob")->string(), "train.validate_every_epochs");
  CountingStepper fewer({.look_ms = 60});
  Ended changed =
      run(fewer, {},
          {"device.clock=wall", "device.step_ms=2", "loader.cache=ram",
           "train.validate_every_epochs=" + action.find("to")->dump()});
  EXPECT_EQ(fewer.looks, stepper.looks / 2);
  EXPECT_TRUE(changed.val_loss(0).is_null());
  EXPECT_FALSE(changed.val_loss(1).is_null());
  const double gain = ended.report.find("wall_s")->number() /
                          changed.report.find("wall_s")->number() -
                      1;
  EXPECT_NEAR(action.find("predicted_gain")->number(), gain, 0.3);
}

TEST_F(LoopTest, AnEndThatNobodyAskedForIsAnError) {
  CountingStepper stepper({.stop_error_at_look = 0});
  EXPECT_THROW(run(stepper), Error);
  SavedState saved = read_resumption(folder_).state;
  EXPECT_EQ(saved.steps_taken, per_epoch_);
  EXPECT_EQ(saved.to_validate, 0);
}

TEST_F(LoopTest, NothingIsOwedWhereNothingIsHeldOut) {
  CountingStepper stepper;
  SavedState state;
  state.to_validate = 0;
  Ended ended = run(stepper, state, {"split.val=0", "split.train=1"});
  EXPECT_TRUE(ended.all);
  EXPECT_EQ(stepper.looks, 0);
  EXPECT_EQ(ended.saved().to_validate, std::nullopt);
}

TEST_F(LoopTest, AStepWithoutMemoryGetsThatOfTheRowsAndIsTakenAgain) {
  CountingStepper stepper({.full_at_step = 3});
  Ended ended = run(stepper);
  EXPECT_TRUE(ended.all);
  EXPECT_EQ(stepper.steps, 2 * per_epoch_);
  EXPECT_EQ(ended.val_loss(1).integer(), 2 * ended.val_loss(0).integer());
}

TEST_F(LoopTest, AStepWithoutMemoryFailsWhereTheDeviceKeepsNoRows) {
  CountingStepper stepper({.full_at_step = 3});
  EXPECT_THROW(run(stepper, {}, {"loader.cache=ram", "loader.prefetch=1"}),
               Error);
  EXPECT_EQ(read_resumption(folder_).state.steps_taken, 3);
}

TEST_F(LoopTest, RowsAndBatchesAheadAreGivenUpBeforeTheModelGivesWay) {
  CountingStepper free;
  const Ended expected = run(free);
  ShortStepper stepper(3);
  const Ended ended = run(stepper);
  EXPECT_TRUE(ended.all);
  EXPECT_EQ(stepper.steps, free.steps);
  EXPECT_EQ(ended.val_loss(1), expected.val_loss(1));
  std::vector<OomAction> actions;
  for (const OomEvent& event : stepper.events()) {
    EXPECT_EQ(event.step, 0);
    EXPECT_EQ(event.from, 32);
    actions.push_back(event.action);
  }
  EXPECT_THAT(actions, testing::ElementsAre(OomAction::rows_to_host,
                                            OomAction::look_ahead,
                                            OomAction::micro_batch));
  const Json account = ended.numbers.account.json();
  EXPECT_EQ(account.find("activations")->array().size(),
            static_cast<std::size_t>(stepper.steps));
  EXPECT_EQ(account.find("activations")->array().back().integer(),
            stepper.steps);
  EXPECT_EQ(account.find("cache")->array().back().integer(), 0);
  EXPECT_GT(account.find("look_ahead")->array().back().integer(), 0);
}

TEST_F(LoopTest, WhereNothingIsLeftTheEndNamesTheRowAndWhatWouldFit) {
  ShortStepper stepper(4);
  try {
    run(stepper);
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_THAT(error.parts().where, testing::HasSubstr("step 0, row 1, key"));
    EXPECT_THAT(error.parts().why, testing::HasSubstr("parameters"));
  }
}

TEST_F(LoopTest, WhereTheJobSaysSoTheFirstShortageEndsTheRun) {
  ShortStepper stepper(1);
  EXPECT_THROW(run(stepper, {}, {"train.oom=stop"}), Error);
  EXPECT_TRUE(stepper.events().empty());
}

TEST_F(LoopTest, WhateverEndsItWhatWasDoneIsSaved) {
  CountingStepper stepper({.fail_at_step = 3});
  EXPECT_THROW(run(stepper), std::bad_alloc);
  SavedState saved = read_resumption(folder_).state;
  EXPECT_EQ(saved.steps_taken, 3);
  EXPECT_EQ(saved.position.step, 3);
}

}  // namespace
}  // namespace penstock
