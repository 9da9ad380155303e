#include "penstock/report/compare_runs.h"

#include <gtest/gtest.h>

#include "penstock/report/fake/sample_report.h"
#include "penstock/report/report_facts.h"

namespace penstock {
namespace {

/// The sample run after its first advice was followed.
Json followed() {
  Json report = sample_report();
  report["samples_per_s"] = 3040.0;
  report["au"] = 0.95;
  report["settings"]["loader"]["cache"] = "ram";
  return report;
}

TEST(CompareRuns, TellsWhatFollowingTheAdviceGained) {
  const Json compared = compare_runs(sample_report(), followed());
  EXPECT_NEAR(compared.find("gain")->number(), 0.9, 1e-12);
  const Json& advice = *compared.find("advice");
  EXPECT_EQ(advice.find("knob")->string(), "loader.cache");
  EXPECT_EQ(*advice.find("followed"), Json(true));
  EXPECT_EQ(advice.find("predicted_gain")->number(), 1.0);
  EXPECT_NEAR(advice.find("measured_gain")->number(), 0.9, 1e-12);
  EXPECT_EQ(*advice.find("other_settings_changed"), Json(0));
}

TEST(CompareRuns, ListsTheSettingsThatDiffer) {
  Json second = followed();
  second["settings"]["loader"]["workers"] = 3;
  second["settings"]["output"]["dir"] = "elsewhere";  // decides nothing
  const Json compared = compare_runs(sample_report(), second);
  EXPECT_EQ(compared.find("settings")->dump(),
            R"([{"key": "loader.cache", "first": "none", "second": "ram"}, )"
            R"({"key": "loader.workers", "first": null, "second": "3"}])");
  EXPECT_EQ(*compared.find("advice")->find("other_settings_changed"), Json(1));
}

TEST(CompareRuns, ClaimsNoGainForAdviceThatWasNotFollowed) {
  Json second = sample_report();
  second["settings"]["loader"]["cache"] = "device";
  const Json advice = *compare_runs(sample_report(), second).find("advice");
  EXPECT_EQ(*advice.find("followed"), Json(false));
  EXPECT_TRUE(advice.find("measured_gain")->is_null());
}

TEST(CompareRuns, PutsTheMetricsOfBothBesideOneAnother) {
  Json first = sample_report(), second = sample_report();
  first["metrics"]["val"]["accuracy"] = 0.5;
  first["metrics"]["val"]["auc"] = nullptr;
  second["metrics"]["val"]["accuracy"] = 0.75;
  second["metrics"]["val"]["loss"] = 0.25;
  EXPECT_EQ(compare_runs(first, second).find("metrics")->dump(),
            R"([{"name": "val_accuracy", "first": 0.5, "second": 0.75}, )"
            R"({"name": "val_auc", "first": null, "second": null}, )"
            R"({"name": "val_loss", "first": null, "second": 0.25}])");
}

TEST(CompareRuns, PutsTheStagesOfBothBesideOneAnother) {
  Json second = sample_report();
  Json only;
  only["name"] = "gather";
  only["rate"] = 5.0;
  second["stages"] = Json::Array{only};
  const Json compared = compare_runs(sample_report(), second);
  const Json::Array& stages = compared.find("stages")->array();
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[1].dump(),
            R"({"name": "read", "first": 1650.0, "second": null})");
  EXPECT_EQ(stages[3].dump(),
            R"({"name": "gather", "first": null, "second": 5.0})");
}

TEST(CompareRuns, ComparesWhatThereIs) {
  for (const Json& instead : {Json(), Json("text"), Json(0), Json(1e300),
                              Json(Json::Array{}), Json(Json::Object{})}) {
    with_each_value_changed(sample_report(), instead, [](const Json& changed) {
      EXPECT_TRUE(compare_runs(changed, sample_report()).is_object());
      EXPECT_TRUE(compare_runs(sample_report(), changed).is_object());
    });
  }
  const Json nothing = compare_runs(Json(), Json());
  EXPECT_TRUE(nothing.find("gain")->is_null());
  EXPECT_TRUE(nothing.find("advice")->is_null());
}

}  // namespace
}  // namespace penstock
