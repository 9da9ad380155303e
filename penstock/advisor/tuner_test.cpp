#include "penstock/advisor/tuner.h"

#include <gtest/gtest.h>

#include <map>

#include "penstock/advisor/fake/tuner_cases.h"

namespace penstock {
namespace {

/// A window of one second: a pool "workers" and one that reads.
struct Window {
  double rate = 100;  ///< samples per second
  double steps = 200;
  double workers_rate = 100, readers_rate = 1000;  ///< of the pools
  int workers = 1, readers = 1;
  double cpu = 1;  ///< share of the workers' time

  operator Snapshot() const {  // NOLINT(google-explicit-constructor)
    Snapshot window;
    const double compute = rate / steps;
    window.parts = {.steps = 100,
                    .samples = static_cast<std::int64_t>(rate),
                    .wall = from_seconds(1),
                    .compute = from_seconds(compute),
                    .wait_data = from_seconds(1 - compute)};
    auto add = [&](const char* name, int threads, double pool_rate,
                   double share) {
      window.stages.push_back(
          {.name = name,
           .workers = threads,
           .pool = name,
           .items = 1000,
           .busy_wall = from_seconds(1000 * threads / pool_rate),
           .busy_cpu = from_seconds(share * 1000 * threads / pool_rate)});
    };
    add("readers", readers, readers_rate, 0.1);
    add("workers", workers, workers_rate, cpu);
    return window;
  }
};

std::vector<Knob> two_pools(int most = 16) {
  return {{.name = "loader.workers", .pool = "workers", .most = most},
          {.name = "loader.readers", .pool = "readers", .most = most},
          {.name = "loader.prefetch", .value = 2, .least = 2, .most = 16}};
}

TEST(TunerTest, GivesTheSlowestPoolAsManyThreadsAsTheStepsNeed) {
  Tuner tuner({.cpus = 8}, two_pools());
  std::optional<Decision> first = tuner.next(Window());
  ASSERT_TRUE(first);
  EXPECT_EQ(first->knob, "loader.workers");
  EXPECT_EQ(first->from, 1);
  EXPECT_EQ(first->to, 2);  // at most a doubling
  EXPECT_NEAR(first->predicted_gain, 1, 1e-9);
  EXPECT_EQ(first->reason, "'workers' gives 100 samples/s, the lowest");
  std::optional<Decision> second =
      tuner.next(Window{.rate = 190, .workers_rate = 200, .workers = 2});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->to, 3);  // 1.2 times as fast as the steps
  EXPECT_FALSE(
      tuner.next(Window{.rate = 200, .workers_rate = 300, .workers = 3}));
  EXPECT_EQ(tuner.rests(), "the loop does not wait for its input");
  ASSERT_EQ(tuner.decisions().size(), 2u);
  EXPECT_NEAR(*tuner.decisions()[0].measured_gain, 0.9, 1e-9);
  EXPECT_EQ(tuner.decisions()[1].window, 2);
}

TEST(TunerTest, NamesAKeyOfTheJobAndItsNewValue) {
  std::map<std::string, int> settings;
  auto set = [&](const std::string& knob, int to) { settings[knob] = to; };
  const std::vector<Knob> knobs = two_pools();
  const Snapshot window = Window();
  Tuner tuner({.cpus = 8}, knobs);
  if (std::optional<Decision> change = tuner.next(window))
    set(change->knob, change->to);
  EXPECT_EQ(settings, (std::map<std::string, int>{{"loader.workers", 2}}));
}

TEST(TunerTest, StaysWithinTheProcessorsOfItsBudgetAndSaysSo) {
  Tuner tuner({.cpus = 2.5}, two_pools());
  EXPECT_EQ(tuner.next(Window())->to, 2);
  EXPECT_FALSE(
      tuner.next(Window{.rate = 150, .workers_rate = 150, .workers = 2}));
  EXPECT_EQ(tuner.rests(),
            "'workers' gives 150 samples/s with 2 threads, and all 2.5 "
            "processors of the budget are used");
}

TEST(TunerTest, ThreadsThatWaitCostNoProcessor) {
  Tuner tuner({.cpus = 1.5}, two_pools());
  Window slow{.workers_rate = 1000, .readers_rate = 100, .cpu = 0.5};
  std::optional<Decision> change = tuner.next(slow);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->knob, "loader.readers");
}

TEST(TunerTest, LeavesAloneWhatTheJobHasSet) {
  Tuner tuner({.cpus = 8}, {two_pools()[1]});  // the workers are not a knob
  EXPECT_FALSE(tuner.next(Window()));
  EXPECT_EQ(tuner.rests(),
            "'workers' gives 100 samples/s with 1 thread, its most");
}

TEST(TunerTest, UndoesWhatDoesNotPayAfterASecondLookAndLeavesItForAWhile) {
  Tuner tuner({.cpus = 8}, two_pools());
  EXPECT_EQ(tuner.next(Window())->to, 2);
  Window no_better{.rate = 99, .workers_rate = 101, .workers = 2};
  EXPECT_FALSE(tuner.next(no_better));
  EXPECT_EQ(tuner.rests(), "looks once more at the last change");
  std::optional<Decision> back = tuner.next(no_better);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->from, 2);
  EXPECT_EQ(back->to, 1);
  EXPECT_TRUE(tuner.decisions()[0].undone);
  EXPECT_NEAR(*tuner.decisions()[0].measured_gain, -0.01, 1e-9);
  EXPECT_EQ(tuner.knobs()[0].value, 1);
  for (std::int64_t i = 1; i < Tuner::kFrozen; ++i)
    EXPECT_FALSE(tuner.next(Window())) << i;
  EXPECT_EQ(tuner.next(Window())->to, 2);  // tried again
  tuner.next(no_better);
  ASSERT_TRUE(tuner.next(no_better));
  for (std::int64_t i = 1; i < 2 * Tuner::kFrozen; ++i)
    EXPECT_FALSE(tuner.next(Window())) << i;  // for twice as long
  EXPECT_TRUE(tuner.next(Window()));
}

TEST(TunerTest, AChangeThatCouldNotBeMadeIsLeftForAWhile) {
  Tuner tuner({.cpus = 8}, two_pools());
  ASSERT_EQ(tuner.next(Window())->to, 2);
  tuner.give_up();
  EXPECT_EQ(tuner.knobs()[0].value, 1);
  EXPECT_TRUE(tuner.decisions()[0].undone);
  for (std::int64_t i = 1; i < Tuner::kFrozen; ++i)
    EXPECT_FALSE(tuner.next(Window())) << i;
}

TEST(TunerTest, KeepsAThreadThatMovedTheLimitElsewhere) {
  // Two pools are equally slow: only both together make the loop faster.
  Tuner tuner({.cpus = 8}, two_pools());
  ASSERT_TRUE(tuner.next(Window{.readers_rate = 100}));
  Window moved{.readers_rate = 100};
  (tuner.knobs()[0].value == 2 ? moved.workers_rate : moved.readers_rate) = 200;
  (tuner.knobs()[0].value == 2 ? moved.workers : moved.readers) = 2;
  std::optional<Decision> other = tuner.next(moved);
  ASSERT_TRUE(other);
  EXPECT_NE(other->knob, tuner.decisions()[0].knob);
  EXPECT_FALSE(tuner.decisions()[0].undone);
}

TEST(TunerTest, GivesThreadsBackThatAreNotNeeded) {
  std::vector<Knob> knobs = two_pools();
  knobs[0].value = 4;
  Tuner tuner({.cpus = 8}, knobs);
  Window calm{.rate = 200, .workers_rate = 800, .workers = 4};
  for (int i = 1; i < 5; ++i) EXPECT_FALSE(tuner.next(calm)) << i;
  std::optional<Decision> less = tuner.next(calm);
  ASSERT_TRUE(less);
  EXPECT_EQ(less->to, 3);
  calm.workers = 3;
  calm.workers_rate = 260;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(tuner.next(calm)) << i;
}

TEST(TunerTest, TakesBackAThreadThatWasNeededAfterAll) {
  std::vector<Knob> knobs = two_pools();
  knobs[0].value = 4;
  Tuner tuner({.cpus = 8}, knobs);
  for (int i = 0; i < 5; ++i)
    tuner.next(Window{.rate = 200, .workers_rate = 800, .workers = 4});
  ASSERT_EQ(tuner.knobs()[0].value, 3);
  Window slow{.rate = 150, .workers_rate = 600, .workers = 3};
  EXPECT_FALSE(tuner.next(slow));
  EXPECT_EQ(tuner.next(slow)->to, 4);
}

TEST(TunerTest, MoreBatchesLieReadyOnlyWhereEachPoolIsFastEnough) {
  Tuner tuner({.cpus = 8}, two_pools());
  std::optional<Decision> deeper =
      tuner.next(Window{.rate = 170, .workers_rate = 300});
  ASSERT_TRUE(deeper);
  EXPECT_EQ(deeper->knob, "loader.prefetch");
  EXPECT_EQ(deeper->to, 4);
  EXPECT_EQ(deeper->reason, "each stage is fast enough on average");
}

TEST(TunerTest, MoreBatchesLieReadyWhereReadersLackWork) {
  // 16 of them, of which 8 read at any time, as two batches ahead allow.
  std::vector<Knob> knobs = two_pools(64);
  knobs[1].value = 16;
  Tuner tuner({.cpus = 8}, knobs);
  auto reading = [](double rate, int readers) {
    Snapshot window = Window{.rate = rate, .steps = 250, .readers = readers};
    window.stages.resize(1);
    StageNumbers& read = window.stages[0];
    read.items = window.parts.samples;
    read.busy_wall = from_seconds(0.08 * rate);
    read.busy_cpu = from_seconds(0.004 * rate);
    return window;
  };
  std::optional<Decision> deeper = tuner.next(reading(100, 16));
  ASSERT_TRUE(deeper);
  EXPECT_EQ(deeper->knob, "loader.prefetch");
  EXPECT_EQ(deeper->to, 4);
  EXPECT_NEAR(deeper->predicted_gain, 1.0, 1e-9);
  std::optional<Decision> more = tuner.next(reading(195, 16));
  ASSERT_TRUE(more) << "now all of them read";
  EXPECT_EQ(more->knob, "loader.readers");
  EXPECT_FALSE(tuner.decisions()[0].undone);
}

TEST(TunerTest, AWindowThatSaysNothingChangesNothing) {
  Tuner tuner({.cpus = 8}, two_pools());
  EXPECT_FALSE(tuner.next(Snapshot()));
  Snapshot by_virtual_clock = Window();
  by_virtual_clock.virtual_time = true;
  EXPECT_FALSE(tuner.next(by_virtual_clock));
  EXPECT_TRUE(tuner.decisions().empty());
  EXPECT_TRUE(tuner.next(Window()));
}

TEST(TunerTest, AKnobOutsideOfItsLimitsIsRefused) {
  EXPECT_THROW(Tuner({}, {{.name = "loader.workers", .value = 3, .most = 2}}),
               Error);
}

TEST(TunerTest, ComesCloseToTheBestOfRandomPipelinesAndKeepsItsBudget) {
  // bench/tuner_campaign does 300.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Pipeline pipeline = pipeline_to_tune(seed);
    const TunedPipeline tuned = tune(pipeline, 40);
    EXPECT_GE(rate_of(simulate(tuned.pipeline)), 0.95 * best_rate(pipeline))
        << seed;
    std::map<std::string, std::int64_t> undone;  // when, by knob
    int sum = static_cast<int>(pipeline.stages.size());
    for (const Decision& change : tuned.decisions) {
      if (change.knob.ends_with(".workers")) sum += change.to - change.from;
      EXPECT_LE(sum, pipeline.cpus) << seed;
      if (!change.undone) continue;
      auto [last, first] = undone.try_emplace(change.knob, change.window);
      EXPECT_TRUE(first || change.window >= last->second + Tuner::kFrozen)
          << seed << ": " << change.knob;
      last->second = change.window;
    }
    EXPECT_EQ(sum, workers_of(tuned.pipeline)) << seed;
  }
}

TEST(TunerTest, FollowsStepsThatBecomeTwiceAsFast) {
  Pipeline pipeline{.stages = {{.name = "read", .service_ms = 12},
                               {.name = "prepare", .service_ms = 18}},
                    .step_ms = 10,
                    .cpus = 16};
  pipeline = tune(pipeline, 12).pipeline;
  EXPECT_GE(rate_of(simulate(pipeline)), 99);
  pipeline.step_ms = 5;
  EXPECT_GE(rate_of(simulate(tune(pipeline, 12).pipeline)), 198);
}

}  // namespace
}  // namespace penstock
