#include "penstock/advisor/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"
#include "penstock/base/random.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Pipeline parsed(const std::string& text) {
  return parse_pipeline(Json::parse(text, "test"), "pipeline.json");
}

std::string refusal(const std::string& text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "none";
}

double share(const Snapshot& window, Nanoseconds part) {
  return seconds(part) / seconds(window.parts.wall);
}

TEST(PipelineFile, HoldsStagesStepsAndCopy) {
  const Pipeline pipeline = parsed(
      R"({"step_ms": 20, "step_cv": 0.1, "delivery": "step", "batches": 500,
          "seed": 7, "stages": [{"name": "read", "service_ms": 10, "cv": 0.3,
          "workers": 2, "queue": 4}, {"name": "decode", "service_ms": 5}],
          "copy": {"ms": 1}})");
  ASSERT_EQ(pipeline.stages.size(), 2u);
  EXPECT_EQ(pipeline.stages[0].name, "read");
  EXPECT_EQ(pipeline.stages[0].cv, 0.3);
  EXPECT_EQ(pipeline.stages[0].workers, 2);
  EXPECT_EQ(pipeline.stages[0].queue, 4);
  EXPECT_EQ(pipeline.stages[1].workers, 1);
  EXPECT_EQ(pipeline.copy_ms, 1);
  EXPECT_EQ(pipeline.batches, 500);
  EXPECT_EQ(pipeline.delivery, Delivery::step);
}

TEST(PipelineFile, NamesWhatIsWrongInIt) {
  EXPECT_THAT(refusal("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(refusal("3"), HasSubstr("pipeline.json"));
  EXPECT_THAT(refusal(R"({"step_ms": 5})"),
              AllOf(HasSubstr("stages"), HasSubstr("missing")));
  EXPECT_THAT(refusal(R"({"step_ms": 5, "stages": []})"),
              HasSubstr("no stage"));
  EXPECT_THAT(refusal(R"({"step_ms": 5, "stages": {}})"),
              HasSubstr("a list of stages"));
  EXPECT_THAT(refusal(R"({"step_ms": 5, "stages": ["read"]})"),
              HasSubstr("stages[0]"));
  EXPECT_THAT(refusal(R"({"stages": [{"name": "r", "service_ms": 1}]})"),
              HasSubstr("step_ms"));
  EXPECT_THAT(refusal(R"({"step_ms": -1, "stages": [{"name": "r",
                  "service_ms": 1}]})"),
              AllOf(HasSubstr("step_ms"), HasSubstr("-1")));
  EXPECT_THAT(refusal(R"({"step_ms": 5, "stages": [{"name": "r",
                          "service_ms": 1}, {"name": "q", "service_ms": -2}]})"),
              HasSubstr("pipeline.json: stages[1].service_ms"));
  EXPECT_THAT(refusal(R"({"step_ms": 5, "stages": [{"name": "r",
                          "service_ms": 1, "worker": 2}]})"),
              HasSubstr("did you mean 'workers'?"));
  EXPECT_THAT(refusal(R"({"step_ms": 5, "stages": [{"name": "r",
                          "service_ms": 1}, {"name": "r", "service_ms": 1}]})"),
              HasSubstr("two stages have the name 'r'"));
  EXPECT_THAT(refusal(R"({"step_ms": 5, "delivery": "any", "stages": [{
                          "name": "r", "service_ms": 1}]})"),
              HasSubstr("completion"));
}

TEST(Simulation, GivesTheRateOfItsSlowestPart) {
  Pipeline pipeline{.stages = {{.name = "read", .service_ms = 10}},
                    .step_ms = 5};
  Snapshot late = simulate(pipeline);
  EXPECT_NEAR(rate_of(late), 100, 1e-6);
  EXPECT_NEAR(late.parts.utilisation(), 0.5, 1e-9);
  EXPECT_NEAR(share(late, late.parts.wait_data), 0.5, 1e-9);
  EXPECT_EQ(late.parts.steps, pipeline.batches - 1) << "the first starts it";

  pipeline.stages[0].workers = 2;
  EXPECT_NEAR(simulate(pipeline).parts.utilisation(), 1, 1e-9);
  pipeline.copy_ms = 10;
  Snapshot copies = simulate(pipeline);
  EXPECT_NEAR(rate_of(copies), 100, 1e-6);
  EXPECT_NEAR(share(copies, copies.parts.wait_copy), 0.5, 1e-9);
  EXPECT_EQ(copies.parts.wait_data, Nanoseconds(0));
}

TEST(Simulation, CountsWhatWorkersWaitFor) {
  Snapshot window = simulate({.stages = {{.name = "fast", .service_ms = 2},
                                         {.name = "slow", .service_ms = 8}},
                              .step_ms = 4,
                              .batches = 10'000});
  EXPECT_NEAR(share(window, *window.stages[0].blocked_put), 0.75, 0.01);
  EXPECT_NEAR(share(window, *window.stages[0].blocked_get), 0, 0.01);
  EXPECT_NEAR(share(window, *window.stages[1].blocked_get), 0, 0.01);
  EXPECT_NEAR(share(window, *window.stages[1].blocked_put), 0, 0.01);
}

TEST(Simulation, DrawsTimesOfTheMeanAndTheVariationThatAreDescribed) {
  for (double cv : {0.3, 1.0, 2.0}) {
    Snapshot window =
        simulate({.stages = {{.name = "read", .service_ms = 10, .cv = cv}},
                  .step_ms = 1,
                  .step_cv = cv,
                  .batches = 100'000});
    EXPECT_NEAR(1e3 * seconds(window.stages[0].busy_wall) / 1e5, 10, 0.2);
    EXPECT_NEAR(window.stages[0].times.variation(), cv, 0.05 * cv);
    EXPECT_NEAR(*window.step_cv, cv, 0.05 * cv);
  }
}

Pipeline drawn_pipeline(std::uint64_t number) {
  Random random(11, 0, number, 0);
  auto below = [&](std::uint64_t n) {
    return static_cast<int>(random.below(n));
  };
  Pipeline pipeline{
      .step_ms = 5 + random.uniform() * 30,
      .step_cv = 0.5 * below(2),
      .copy_ms = 10.0 * below(2),
      .delivery = below(2) ? Delivery::step : Delivery::completion,
      .batches = 300,
      .seed = static_cast<std::int64_t>(number)};
  for (int i = 0, stages = 1 + below(6); i < stages; ++i)
    pipeline.stages.push_back({.name = "stage" + std::to_string(i),
                               .service_ms = random.uniform() * 60,
                               .cv = 0.5 * below(3),
                               .workers = 1 + below(8),
                               .queue = 1 + below(16)});
  return pipeline;
}

TEST(Simulation, PartsOfEveryPipelineSumToItsTime) {
  for (std::uint64_t number = 0; number < 300; ++number) {
    const StepParts parts = simulate(drawn_pipeline(number)).parts;
    EXPECT_EQ(parts.steps, 299) << number;
    EXPECT_GE(parts.wait_data, Nanoseconds(-1)) << number;
    EXPECT_GE(parts.wait_copy, Nanoseconds(-1)) << number;
    EXPECT_NEAR(seconds(parts.compute + parts.wait_data + parts.wait_copy),
                seconds(parts.wall), 1e-6)
        << number;
  }
}

TEST(Simulation, IsAFunctionOfItsDescription) {
  const Pipeline pipeline = drawn_pipeline(3);
  EXPECT_EQ(simulate(pipeline).parts.wall, simulate(pipeline).parts.wall);
  Pipeline other = pipeline;
  other.seed = 99;
  EXPECT_NE(simulate(other).parts.wall, simulate(pipeline).parts.wall);
}

/// Times vary by as much as they are long, and the order is restored.
Pipeline in_order() {
  return {.stages = {{.name = "read", .service_ms = 8, .cv = 0, .queue = 4},
                     {.name = "decode",
                      .service_ms = 72,
                      .cv = 1,
                      .workers = 8,
                      .queue = 8}},
          .step_ms = 8.5,
          .delivery = Delivery::step,
          .batches = 5000};
}

TEST(Simulation, OrderMakesBatchesWaitForAnEarlierOne) {
  Pipeline pipeline = in_order();
  const Snapshot ordered = simulate(pipeline);
  EXPECT_GT(share(ordered, ordered.wait_order), 0.1);
  pipeline.delivery = Delivery::completion;
  const Snapshot as_ready = simulate(pipeline);
  EXPECT_EQ(as_ready.wait_order, Nanoseconds(0));
  EXPECT_GT(rate_of(as_ready), 1.2 * rate_of(ordered));
}

TEST(DiagnosePipeline, NamesTheSlowestStageAndWhatMoreWorkersGive) {
  Pipeline pipeline{.stages = {{.name = "read", .service_ms = 10, .queue = 4},
                               {.name = "decode",
                                .service_ms = 60,
                                .cv = 0.3,
                                .workers = 2,
                                .queue = 4}},
                    .step_ms = 12};
  const Snapshot now = simulate(pipeline);
  const Verdict verdict = diagnose(now);
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_EQ(verdict.stage, "decode");
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "decode.workers");
  EXPECT_GT(verdict.actions[0].to.integer(), 4);
  pipeline.stages[1].workers =
      static_cast<int>(verdict.actions[0].to.integer());
  EXPECT_NEAR(verdict.actions[0].predicted_gain,
              rate_of(simulate(pipeline)) / rate_of(now) - 1, 0.05);
}

std::vector<std::string> offered_for(const Pipeline& pipeline) {
  std::vector<std::string> offered;
  for (const Action& action : diagnose(simulate(pipeline)).actions)
    offered.push_back(action.knob + " " + action.to.dump());
  return offered;
}

TEST(DiagnosePipeline, OffersNoMoreWorkersThanThereAreProcessors) {
  Pipeline pipeline{.stages = {{.name = "read", .service_ms = 100}},
                    .step_ms = 10,
                    .cpus = 3};
  EXPECT_THAT(offered_for(pipeline),
              ElementsAre("read.workers 3", "read.workers 2"));
  pipeline.cpus = 1;
  const Verdict none = diagnose(simulate(pipeline));
  EXPECT_TRUE(none.actions.empty());
  EXPECT_THAT(none.no_action, HasSubstr("'read' cheaper"));
}

TEST(DiagnosePipeline, OffersTheFewestWorkersThatGainAsMuchAsMore) {
  Pipeline pipeline{
      .stages = {{.name = "read", .service_ms = 26, .workers = 2}},
      .step_ms = 10,
      .cpus = 64};
  EXPECT_THAT(offered_for(pipeline), ElementsAre("read.workers 3"));
  pipeline.stages[0].service_ms = 100;
  pipeline.stages[0].workers = 8;
  EXPECT_THAT(offered_for(pipeline),
              ElementsAre("read.workers 10", "read.workers 9"));
}

TEST(DiagnosePipeline, SaysThatTheOrderIsTheLimit) {
  const Verdict verdict = diagnose(simulate(in_order()));
  EXPECT_EQ(verdict.limit, Limit::order) << verdict.cause;
  EXPECT_EQ(verdict.stage, "decode");
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "decode.queue");
}

TEST(DiagnosePipeline, OffersPlacesWhereOnlyTimesVary) {
  const Verdict verdict = diagnose(simulate(
      {.stages = {{.name = "read", .service_ms = 10, .cv = 2, .queue = 2}},
       .step_ms = 11,
       .cpus = 1}));
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_THAT(verdict.cause, HasSubstr("fast enough on average"));
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "read.queue");
}

TEST(DiagnosePipeline, AdvisesNothingWhereTheAcceleratorIsTheLimit) {
  const Verdict verdict = diagnose(simulate(
      {.stages = {{.name = "read", .service_ms = 7, .cv = 0.3, .queue = 8}},
       .step_ms = 10}));
  EXPECT_EQ(verdict.limit, Limit::compute);
  EXPECT_EQ(verdict.stage, "");
  EXPECT_TRUE(verdict.actions.empty());
}

TEST(PipelineOf, ALoopTakesItsTimeBetweenTwoStepsWithFasterStagesToo) {
  Snapshot window;
  window.parts = {.steps = 100, .samples = 100, .wall = from_seconds(2)};
  window.parts.compute = from_seconds(0.5);
  window.parts.host = from_seconds(0.01);
  StageNumbers read{.name = "read", .workers = 1, .items = 100};
  read.busy_wall = from_seconds(2);
  read.places = 2;
  window.stages = {read};
  ASSERT_TRUE(pipeline_of(window));
  EXPECT_NEAR(pipeline_of(window)->step_ms, 5.1, 1e-9);
}

}  // namespace
}  // namespace penstock
