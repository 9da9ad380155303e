#include "penstock/run/newest_run.h"

#include <gtest/gtest.h>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/run/train.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

std::string run_of(const TrainResult& result) {
  return result.report.find("run")->string();
}

TEST(NewestRun, IsTheLastOfTheSameSettings) {
  PositionsRun positions;
  EXPECT_FALSE(newest_run(positions.job()));
  const std::string first = run_of(train(positions.job(), {}));
  EXPECT_EQ(newest_run(positions.job()), first);
  const std::string second = run_of(train(positions.job(), {}));
  EXPECT_EQ(newest_run(positions.job()), second);
}

TEST(NewestRun, LengthAndOutputsMayDiffer) {
  PositionsRun positions;
  const std::string run = run_of(train(positions.job({"train.epochs=1"}), {}));
  EXPECT_EQ(newest_run(positions.job(
                {"train.epochs=3", "train.max_steps=5", "output.csv=true"})),
            run);
  EXPECT_FALSE(newest_run(positions.job({"loader.batch_size=7"})));
  EXPECT_FALSE(newest_run(positions.job({"train.checkpoint_every_steps=2"})));
}

TEST(NewestRun, OneWithoutAStateIsPassedOver) {
  PositionsRun positions;
  const std::string first = run_of(train(positions.job(), {}));
  const std::string killed = run_of(train(positions.job(), {}));
  std::filesystem::remove(killed + "/state.json");
  EXPECT_EQ(newest_run(positions.job()), first);
}

TEST(NewestRun, WhereThereIsNoneARunBeginsOrItIsAnError) {
  PositionsRun positions;
  EXPECT_EQ(newest_run_or_begin(positions.job(), true), "");
  try {
    newest_run_or_begin(positions.job(), false);
    ADD_FAILURE() << "there is no run";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "resume.no_run");
  }
}

TEST(NewestRun, ARunThatIsFinishedIsNotBegunAgain) {
  PositionsRun positions;
  const Job job = positions.job({"train.epochs=1"});
  std::string said;
  auto again = [&] {
    said.clear();
    TrainOptions options{.resume_newest = true, .or_begin = true};
    options.listener.note = [&](const std::string& line) {
      said += line + "\n";
    };
    return run_of(train(job, options));
  };
  const std::string first = again();
  EXPECT_NE(said.find("a new one begins"), said.npos);
  EXPECT_EQ(again(), first);
  EXPECT_NE(said.find(first + " is finished"), said.npos);
  EXPECT_EQ(again(), first);
}

}  // namespace
}  // namespace penstock
