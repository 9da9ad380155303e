#include "penstock/inspect/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "penstock/demo/fake/positions_run.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class SweepSettings : public testing::Test {
 protected:
  /// Steps of 2 ms, without a model.
  Job job(const std::vector<std::string>& sets) {
    std::vector<std::string> all = {R"(device={"kind": "sim", "step_ms": 2})",
                                    "model=none", "loader.workers=1",
                                    "loader.batch_size=50"};
    all.insert(all.end(), sets.begin(), sets.end());
    return positions_.job(all);
  }
  static Sweep quick() {
    return {
        .workers = {0, 2}, .prefetch = {0, 2}, .seconds = 0.05, .repeats = 2};
  }
  PositionsRun positions_{200};
};

TEST_F(SweepSettings, MeasuresThePresentOnesAndAllOthers) {
  std::vector<std::string> said;
  Sweep sweep = quick();
  sweep.progress = [&](const std::string& line) { said.push_back(line); };
  const Json json = sweep_settings(job({}), sweep);
  const auto& settings = json.find("settings")->array();
  ASSERT_EQ(settings.size(), 5u) << "the present one, and two by two";
  EXPECT_EQ(settings[0].find("loader.workers")->integer(), 1);
  EXPECT_EQ(json.find("present")->integer(), 0);
  for (const Json& setting : settings) {
    const Json& rate = *setting.find("rate");
    EXPECT_LE(rate.find("min")->number(), rate.find("median")->number());
    EXPECT_LE(rate.find("median")->number(), rate.find("max")->number());
    // 50 samples in 2 ms at the most.
    EXPECT_LE(rate.find("max")->number(), 25'500);
    EXPECT_GT(rate.find("min")->number(), 0);
    EXPECT_LE(setting.find("au")->number(), 1);
  }
  EXPECT_LE(json.find("ceiling")->number(), 25'500);
  EXPECT_GT(json.find("ceiling")->number(), 2000);
  EXPECT_GT(json.find("best_of_ceiling")->number(), 0);
  EXPECT_GE(json.find("gain")->number(), 0);
  EXPECT_THAT(said, testing::Contains(HasSubstr("2 workers, 2 batches")));
  EXPECT_EQ(json.find("cumulative")->array().size(), 3u);
}

TEST_F(SweepSettings, TheCeilingIsThatOfTheStepsAlone) {
  Sweep sweep = quick();
  sweep.ceiling_only = true;
  const Json json =
      sweep_settings(job({"source.round_trip_ms=1", "loader.cache=none",
                          "loader.read=per_sample"}),
                     sweep);
  EXPECT_EQ(json.find("settings"), nullptr);
  EXPECT_LE(json.find("ceiling")->number(), 25'500);
  EXPECT_GT(json.find("ceiling")->number(), 2000)
      << "a query per sample gives 1,000 at the most";
}

TEST_F(SweepSettings, ThereIsNoCeilingWhereStepsTakeNoTime) {
  const Json json = sweep_settings(job({"device=cpu"}), quick());
  EXPECT_TRUE(json.find("ceiling")->is_null());
  EXPECT_EQ(json.find("best_of_ceiling"), nullptr);
  EXPECT_TRUE(json.find("settings")->array()[0].find("au")->is_null());
}

TEST_F(SweepSettings, FindsThatWorkersHelpWhereReadingIsSlow) {
  Sweep sweep = quick();
  sweep.seconds = 0.4;
  sweep.repeats = 1;
  const Json json =
      sweep_settings(job({"source.round_trip_ms=25", "loader.cache=none",
                          "loader.workers=0", "loader.prefetch=0"}),
                     sweep);
  const auto best = static_cast<std::size_t>(json.find("best")->integer());
  EXPECT_GT(
      json.find("settings")->array()[best].find("loader.workers")->integer(), 0)
      << json.dump(1);
  EXPECT_GT(json.find("gain")->number(), 0.02);
}

TEST_F(SweepSettings, RefusesNumbersThatMakeNoSense) {
  for (const Sweep& wrong :
       {Sweep{.seconds = 0}, Sweep{.repeats = 0}, Sweep{.workers = {-1}},
        Sweep{.prefetch = {2, -2}}}) {
    try {
      sweep_settings(job({}), wrong);
      FAIL() << "it measured";
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "bench.numbers");
    }
  }
}

TEST_F(SweepSettings, EndsWhenItIsStopped) {
  std::atomic<bool> stop{true};
  Sweep sweep = quick();
  sweep.stop = &stop;
  try {
    sweep_settings(job({}), sweep);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_TRUE(is_stop(error)) << error.what();
  }
}

}  // namespace
}  // namespace penstock
