#include "penstock/report/report_json.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/device/fake/named_gpu.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

/// `machine.gpu` of what a run tells at its start and at its end.
std::vector<const Json*> gpus(const Json& start, const Json& end) {
  return {start.find("machine")->find("gpu"), end.find("machine")->find("gpu")};
}

TEST(Report, TellsOfTheGpuWithNullForWhatIsNotKnown) {
  PositionsRun positions;
  Job job = positions.job();
  const NamedGpu device("cuda:0", kNoBus);
  Json start = run_json(job, device, "");
  Json end = report_json(RunNumbers(), job, nullptr, device);
  for (const Json* gpu : gpus(start, end)) {
    ASSERT_NE(gpu, nullptr);
    EXPECT_EQ(*gpu, GpuUse().json());
  }
}

TEST(Report, TellsOfNoGpuWhereTheDeviceIsNone) {
  PositionsRun positions;
  Job job = positions.job();
  for (const char* kind : {"cpu", "sim"}) {
    std::unique_ptr<Device> device = open_device({.kind = kind});
    Json start = run_json(job, *device, "");
    Json end = report_json(RunNumbers(), job, nullptr, *device);
    for (const Json* gpu : gpus(start, end)) EXPECT_EQ(gpu, nullptr) << kind;
  }
}

TEST(Report, HasNothingInForceBeforeThereIsAModel) {
  PositionsRun positions;
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  const Json start = run_json(positions.job(), *device, "");
  ASSERT_NE(start.find("effective"), nullptr);
  EXPECT_EQ(start.find("effective")->dump(), "{}");
}

TEST(Report, HasTheMeasuresOfTheLastEpochThatWasValidated) {
  PositionsRun positions;
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  RunNumbers run;
  auto metrics = [&] {
    return report_json(run, positions.job(), nullptr, *device)
        .find("metrics")
        ->dump();
  };
  EXPECT_EQ(metrics(), "{}");
  run.epochs[0].train_loss = 3;
  run.epochs[0].validated["val_accuracy"] = 0.25;
  run.epochs[1].train_loss = 2;
  run.epochs[1].validated["val_loss"] = 1.5;
  run.epochs[1].validated["val_accuracy"] = 0.5;
  run.epochs[2].samples = 7;  // stopped in the middle
  EXPECT_EQ(
      metrics(),
      R"({"train": {"loss": 2.0}, "val": {"loss": 1.5, "accuracy": 0.5}})");
}

class ReportOfLoop
    : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(ReportOfLoop, NamesTheSamplesOfTheLongestSteps) {
  const auto [workers, device] = GetParam();
  PositionsRun positions;
  Job job = positions.job({"device=" + std::string(device),
                           "loader.workers=" + std::to_string(workers),
                           "train.epochs=3"});
  auto session = open_loader(job, {.timed = true});
  std::map<std::pair<std::int64_t, std::int64_t>, Json> first;
  while (std::optional<Batch> batch = session->next()) {
    Json& keys = first[{batch->at().epoch, batch->at().step}];
    keys = Json::Array{};
    for (SampleId id : batch->ids().first(5))
      keys.push_back(key_of(session->rows(), id));
  }
  const Json report = report_of(*session);
  const Json::Array& worst = report.find("worst_steps")->array();
  ASSERT_EQ(worst.size(), StepClock::kSlowest);
  for (const Json& step : worst)
    EXPECT_EQ(
        *step.find("samples"),
        (first[{step.find("epoch")->integer(), step.find("step")->integer()}]));
  std::int64_t steps = 0;
  for (const Json& count : report.find("timeline")->find("steps")->array())
    steps += count.integer();
  EXPECT_EQ(steps, std::ssize(first) - 1) << "the first only starts the clock";
}

INSTANTIATE_TEST_SUITE_P(Workers, ReportOfLoop,
                         testing::Combine(testing::Values(0, 1, 2, 8),
                                          testing::Values("cpu", "sim")));

TEST(Report, OfALoopThatIsNotTimedHasAnEmptyTimeLine) {
  PositionsRun positions;
  auto session = open_loader(positions.job());
  while (session->next()) continue;
  const Json report = report_of(*session);
  EXPECT_TRUE(report.find("timeline")->find("seconds")->array().empty());
  EXPECT_TRUE(report.find("worst_steps")->array().empty());
}

}  // namespace
}  // namespace penstock
