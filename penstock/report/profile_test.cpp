#include "penstock/report/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "penstock/demo/fake/positions_run.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// The steps and the names that a trace holds.
std::pair<std::set<std::int64_t>, std::set<std::string>> seen_in(
    const std::string& file) {
  std::set<std::int64_t> steps;
  std::set<std::string> names;
  const Json trace = Json::parse(real_files().read(file), file);
  for (const Json& event : trace.find("traceEvents")->array()) {
    if (event.find("ph")->string() != "X") continue;
    names.insert(event.find("name")->string());
    if (event.find("name")->string() == "step")
      steps.insert(event.find("args")->find("step")->integer());
  }
  return {steps, names};
}

TEST(RunTraces, ATraceHoldsThePipelineAndTheDevice) {
  PositionsRun positions;
  const Json report =
      train(positions.job({"device.clock=wall", "device.step_ms=1",
                           "train.max_steps=12", "loader.cache=none"}),
            {.trace = true})
          .report;
  auto [steps, names] = seen_in(report.find("run")->string() + "/trace.json");
  EXPECT_EQ(steps.size(), 11u);  // the first only starts the clock
  for (const char* name :
       {"plan", "read", "parse", "collate", "step", "wait for the batch"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(RunTraces, AProfileIsOfSomeStepsAndSaysWhatEachStageTook) {
  PositionsRun positions(3000);
  std::vector<std::string> notes;
  const Json report =
      train(positions.job({"device.clock=wall", "device.step_ms=1",
                           "train.max_steps=50", "train.profile=true",
                           "loader.cache=none"}),
            {.listener = {.note =
                              [&](const std::string& line) {
                                notes.push_back(line);
                              }}})
          .report;
  auto [steps, names] = seen_in(report.find("run")->string() + "/trace.json");
  EXPECT_GE(steps.size(), 15u);
  EXPECT_LE(steps.size(), 23u);
  EXPECT_THAT(notes, testing::Contains(HasSubstr("read > avg ")));
  EXPECT_THAT(notes, testing::Contains(HasSubstr("trace.json: open it in")));
}

TEST(RunTraces, ARunHasNoneUnlessItIsAskedFor) {
  PositionsRun positions;
  const Json report = train(positions.job(), {}).report;
  EXPECT_FALSE(
      std::filesystem::exists(report.find("run")->string() + "/trace.json"));
}

TEST(TimingLines, NoMaximumIsBelowTheMean) {
  using namespace std::chrono_literals;
  StageNumbers read{.name = "read", .busy_wall = 206ms};
  read.times.add(20'600us, 10);
  EXPECT_THAT(timing_lines({read})[0],
              HasSubstr("read > avg 20.6 ms, max 20.6 ms"));
  EXPECT_EQ(time_of(read, 0.5), 20'600us);
  EXPECT_EQ(time_of(read, 0.99), 20'600us);
  read.times.add(1ms);
  read.busy_wall += 1ms;
  EXPECT_EQ(*time_of(read, 1), 20'600us);
  EXPECT_EQ(time_of(StageNumbers{}, 0.5), std::nullopt);
}

TEST(TimingLines, AreOfStagesThatDidSomething) {
  using namespace std::chrono_literals;
  StageNumbers read{.name = "read", .busy_wall = 30ms}, idle{.name = "collate"};
  read.times.add(10ms);
  read.times.add(20ms);
  const std::vector<std::string> lines = timing_lines({read, idle});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::StartsWith("read > avg 15 ms, max "));
  EXPECT_THAT(lines[0], HasSubstr("2 times"));
}

}  // namespace
}  // namespace penstock
