#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/run/loop.h"

namespace penstock {
namespace {

/// A model whose step n has the loss n, which is known three steps later, as on
/// a GPU that is behind. It may fail before the losses are told.
class LateStepper final : public Stepper {
 public:
  static constexpr std::size_t kBehind = 3;

  LateStepper() : Stepper({.has_model = true}) {}
  void step(const std::shared_ptr<Batch>&, Stream&,
            std::int64_t number) override {
    if (number == fail_at) {
      failed_ = true;
      throw Error(ErrorKind::device, {.code = "test.step", .what = "no more"});
    }
    late_.push_back(number == nan_at ? std::nan("")
                                     : static_cast<double>(number));
  }
  std::vector<double> losses(bool wait) override {
    if (wait && failed_)
      throw Error(ErrorKind::device, {.code = "test.device", .what = "gone"});
    if (wait && !late_.empty()) ++waits;
    std::vector<double> known;
    while (late_.size() > (wait ? 0 : kBehind)) {
      known.push_back(late_.front());
      late_.pop_front();
    }
    return known;
  }

  std::int64_t fail_at = -1, nan_at = -1;
  int saves = 0;
  int waits = 0;  // for losses that were not known

 private:
  ModelState state_in(std::vector<std::byte>) override {
    ++saves;
    return {};
  }

  std::deque<double> late_;
  bool failed_ = false;
};

/// A line of steps.jsonl: step and loss, where it has one.
using Line = std::pair<std::int64_t, std::optional<double>>;

class LateLossTest : public testing::Test {
 protected:
  /// False when it ended by an error.
  bool run(Stepper& stepper, const std::vector<std::string>& sets = {}) {
    Job job = positions_.job(sets);
    auto session = open_loader(job, {.timed = true});
    RunFolder folder(real_files(), job.output.dir,
                     run_json(job, session->device(), ""));
    folder_ = folder.path().string();
    Checkpoints checkpoints(folder);
    Quarantine quarantine(folder);
    SavedState state;
    each_ = session->steps_per_epoch();
    TrainOptions options;
    Loop loop({.job = job,
               .options = options,
               .session = *session,
               .folder = folder,
               .stepper = stepper,
               .checkpoints = checkpoints,
               .quarantine = quarantine,
               .state = state},
              job.training.epochs * each_);
    try {
      bool all = loop.run();
      numbers_ = session->numbers();
      return all;
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, expected_);
      where_ = error.parts().where;
      return false;
    }
  }
  std::vector<Line> lines() const {
    std::istringstream text(real_files().read(folder_ + "/steps.jsonl"));
    std::vector<Line> lines;
    for (std::string line; std::getline(text, line);) {
      Json entry = Json::parse(line, "steps.jsonl");
      const Json* loss = entry.find("loss");
      lines.emplace_back(entry.find("epoch")->integer() * each_ +
                             entry.find("step")->integer(),
                         loss == nullptr || loss->is_null()
                             ? std::nullopt
                             : std::optional(loss->number()));
    }
    return lines;
  }

  PositionsRun positions_;
  RunNumbers numbers_;
  std::string folder_, expected_ = "test.step", where_;
  std::int64_t each_ = 0;  // steps of an epoch
};

TEST_F(LateLossTest, EveryLineHasTheLossOfItsOwnStepHoweverLateThatIsKnown) {
  LateStepper stepper;
  EXPECT_TRUE(run(stepper, {"train.epochs=2"}));
  std::vector<Line> expected;
  for (std::int64_t i = 0; i < 2 * each_; ++i) expected.emplace_back(i, i);
  EXPECT_EQ(lines(), expected);
}

TEST_F(LateLossTest, AnEpochsLossIsTheMeanOfAllItsSteps) {
  LateStepper stepper;
  run(stepper, {"train.epochs=2"});
  double first = static_cast<double>(each_ - 1) / 2;
  EXPECT_DOUBLE_EQ(numbers_.epochs[0].train_loss.value(), first);
  EXPECT_DOUBLE_EQ(numbers_.epochs[1].train_loss.value(),
                   first + static_cast<double>(each_));
}

TEST_F(LateLossTest, OnlyTheEndOfAnEpochWaitsForLosses) {
  LateStepper stepper;
  run(stepper, {"train.epochs=2"});
  EXPECT_EQ(stepper.waits, 2);
}

TEST_F(LateLossTest, ACheckpointWaitsForTheLossesOfTheStepsBeforeIt) {
  LateStepper stepper;
  run(stepper, {"train.epochs=1", "train.checkpoint_every_steps=4"});
  EXPECT_EQ(stepper.waits, (each_ + 3) / 4);
}

TEST_F(LateLossTest, WhenTheDeviceFailsTheLinesOfItsLastStepsHaveNoLoss) {
  LateStepper stepper;
  stepper.fail_at = 7;
  std::vector<std::string> logged;
  set_log_writer(
      [&](LogLevel, std::string_view line) { logged.emplace_back(line); });
  EXPECT_FALSE(run(stepper));
  set_log_writer({});
  std::vector<Line> expected;
  for (std::int64_t i = 0; i < 4; ++i) expected.emplace_back(i, i);
  for (std::int64_t i = 4; i < 7; ++i) expected.emplace_back(i, std::nullopt);
  EXPECT_EQ(lines(), expected);
  EXPECT_THAT(logged, testing::ElementsAre(testing::HasSubstr("gone")));
}

TEST_F(LateLossTest, ALossThatIsNoNumberEndsTheRunAndSavesNothingAfterIt) {
  LateStepper stepper;
  stepper.nan_at = 7;
  expected_ = "train.not_finite";
  EXPECT_FALSE(run(stepper, {"train.checkpoint_every_steps=5"}));
  EXPECT_EQ(where_, "epoch 0, step 7, the loss");
  EXPECT_EQ(stepper.saves, 1);  // after step 5
  EXPECT_EQ(lines().at(7), Line(7, std::nullopt));
}

TEST_F(LateLossTest, WithoutAModelALineWaitsForNothing) {
  std::unique_ptr<Device> sim = open_device({.kind = "sim"});
  NoModel stepper(*sim);
  EXPECT_TRUE(run(stepper, {"train.epochs=1"}));
  std::vector<Line> expected;
  for (std::int64_t i = 0; i < each_; ++i)
    expected.emplace_back(i, std::nullopt);
  EXPECT_EQ(lines(), expected);
}

}  // namespace
}  // namespace penstock
