#include "penstock/report/folds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/json_path.h"
#include "penstock/report/report_html.h"

namespace penstock {
namespace {

using testing::HasSubstr;

Json report_of(const std::string& accuracy, const std::string& best) {
  return Json::parse(R"({"run": "r", "steps": 6, "epochs": [
      {"epoch": 0, "val_loss": 0.5, "val_accuracy": )" +
                         accuracy + R"(},
      {"epoch": 1, "val_loss": 0.75, "val_accuracy": 0.5}],
      "best": )" + best + "}",
                     "test");
}

constexpr const char* kFirst =
    R"({"epoch": 0, "step": 3, "metric": "loss", "value": 0.5})";

TEST(Folds, HaveTheMetricsOfTheWeightsThatWereKept) {
  const Json best = outcome_of_fold(report_of("0.25", kFirst), 2);
  EXPECT_EQ(best.find("val")->dump(), R"({"loss": 0.5, "accuracy": 0.25})");
  EXPECT_EQ(number_in(best, {"fold"}), 2);
  const Json last = outcome_of_fold(report_of("0.25", "null"), 2);
  EXPECT_EQ(last.find("val")->dump(), R"({"loss": 0.75, "accuracy": 0.5})");
}

TEST(Folds, HaveAMeanAndTheSpreadOfASample) {
  Json report;
  report["run"] = "runs/a<b";
  add_folds({outcome_of_fold(report_of("0.25", kFirst), 0),
             outcome_of_fold(report_of("0.75", kFirst), 1)},
            report);
  EXPECT_TRUE(has_folds(report));
  EXPECT_EQ(number_in(report, {"mean", "accuracy"}), 0.5);
  EXPECT_NEAR(*number_in(report, {"spread", "accuracy"}), 0.35355339, 1e-8);
  EXPECT_EQ(number_in(report, {"spread", "loss"}), 0);
  const std::string text = folds_text(report);
  EXPECT_THAT(text, HasSubstr("accuracy"));
  EXPECT_THAT(text, HasSubstr("spread"));
  const std::string page = report_html(report);
  EXPECT_THAT(page, HasSubstr("runs/a&lt;b"));
  EXPECT_THAT(page, HasSubstr("folds/1/report.html"));
}

TEST(Folds, OfWhichOneIsFinishedHaveNoSpread) {
  Json report;
  add_folds({outcome_of_fold(report_of("0.25", kFirst), 0)}, report);
  EXPECT_EQ(number_in(report, {"mean", "loss"}), 0.5);
  EXPECT_TRUE(report.find("spread")->find("loss")->is_null());
}

TEST(Folds, LackAMeanOfWhatOneOfThemDidNotMeasure) {
  Json report;
  const Json other = outcome_of_fold(report_of("null", kFirst), 1);
  add_folds({outcome_of_fold(report_of("0.25", kFirst), 0), other}, report);
  EXPECT_EQ(report.find("mean")->find("accuracy"), nullptr);
  add_folds({}, report);
  EXPECT_TRUE(has_folds(report));
  EXPECT_THAT(folds_text(report), HasSubstr("mean"));
}

}  // namespace
}  // namespace penstock
