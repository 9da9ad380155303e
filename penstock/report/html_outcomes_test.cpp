#include "penstock/report/html_outcomes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/report/fake/sample_report.h"
#include "penstock/report/report_html.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kOutcomes = R"({
  "run": "runs/1",
  "epochs": [
    {"epoch": 0, "train_loss": 1.0, "val_loss": 1.1, "val_accuracy": 0.5},
    {"epoch": 1, "train_loss": 0.5, "val_loss": 0.6, "val_accuracy": 0.75}],
  "metrics": {"val": {"loss": 0.6, "accuracy": 0.75, "auc": null}},
  "baseline": {"of": "train", "class": "cat", "val_accuracy": 0.5,
               "val_loss": 0.7},
  "best": {"epoch": 1, "step": 20, "metric": "val_loss", "value": 0.6},
  "learning_rate": {"peak": 0.01, "points": [[0, 0.005], [10, 0.01]]},
  "confusion": {"classes": ["cat", "dog"], "others": 3,
                "counts": [[5, 1, 0], [2, 4, 0], [0, 0, 0]]},
  "by_class": [{"class": "cat", "rows": 6, "precision": 0.714, "recall": 0.833},
               {"class": "dog", "rows": 6, "precision": 0.8, "recall": null}],
  "residuals": {"mean": 0.5, "points": [[1.0, 1.5], [2.0, 2.5]],
                "histogram": {"from": -1.0, "to": 2.0, "counts": [1, 0, 4]}},
  "worst_rows": [
    {"key": "a/1.png", "loss": 4.5, "truth": "cat", "guess": "dog",
     "thumbnail": "data:image/png;base64,iVBORw0KGgo="},
    {"key": 7, "loss": 2.5, "truth": ["cat", "dog"], "guess": []}]})";

Json outcomes() { return Json::parse(kOutcomes, "a test"); }

TEST(HtmlOutcomes, TheMetricsComeFirstBesideTheBaseline) {
  const std::string page = report_html(outcomes());
  EXPECT_THAT(page, HasSubstr("<title>runs/1: val accuracy 0.75</title>"));
  EXPECT_THAT(
      metric_tiles(outcomes()),
      HasSubstr("<b><data value=\"0.75\">0.75</data></b><span>val accuracy "
                "\u00b7 baseline <data value=\"0.5\">0.5</data></span>"));
  EXPECT_LT(page.find("val accuracy"), page.find("accelerator utilisation"));
  EXPECT_THAT(metric_tiles(outcomes()), Not(HasSubstr("auc")));
}

TEST(HtmlOutcomes, TheBestEpochIsMarkedInTheCurves) {
  EXPECT_EQ(best_line(outcomes()), "Best: val loss 0.6 in epoch 2");
  EXPECT_THAT(report_html(outcomes()), HasSubstr("<path class=\"best\""));
  Json without = outcomes();
  without["best"] = nullptr;
  EXPECT_EQ(best_line(without), "");
  EXPECT_THAT(report_html(without), Not(HasSubstr("class=\"best\"")));
}

TEST(HtmlOutcomes, ShowWhatIsTakenForWhat) {
  const std::string text = classes_section(outcomes());
  EXPECT_THAT(text, HasSubstr("<tr><th>cat</th><td class=\"count right\" "
                              "style=\"--strength:73%\">"));
  EXPECT_THAT(text, HasSubstr("<th>all others</th>"));
  EXPECT_THAT(text, HasSubstr("3 more are counted together"));
  EXPECT_THAT(text, HasSubstr("guessing the class cat for every row is right "
                              "in <data value=\"0.5\">50.0 %</data>"));
  EXPECT_THAT(text, HasSubstr("83.3 %"));
}

TEST(HtmlOutcomes, ShowHowFarNumbersAreOff) {
  Json report = outcomes();
  report["baseline"] =
      Json::parse(R"({"of": "train", "mean": 1.5, "val_rmse": 2.0})", "a test");
  const std::string text = residuals_section(report);
  EXPECT_THAT(text,
              HasSubstr("guessing the mean, 1.5 for every row is off by"));
  EXPECT_THAT(text, HasSubstr("<circle cx=\"2.00\" cy=\"66.00\""));
  EXPECT_THAT(text, HasSubstr("height:25.00%"));
  report["residuals"] = nullptr;
  EXPECT_EQ(residuals_section(report), "");
}

TEST(HtmlOutcomes, ListTheWorstRowsWithTheirPictures) {
  const std::string text = worst_rows_section(outcomes());
  EXPECT_THAT(text, HasSubstr("<img alt=\"\" "
                              "src=\"data:image/png;base64,iVBORw0KGgo=\">"));
  EXPECT_THAT(text, HasSubstr("<td>a/1.png</td><td>cat</td><td>dog</td>"));
  EXPECT_THAT(text, HasSubstr("<td>cat, dog</td><td>none</td>"));
  EXPECT_EQ(worst_rows_section(Json(Json::Object{})), "");
}

TEST(HtmlOutcomes, TakeNamesForTextAndNoPictureFromElsewhere) {
  const char* kEvil = "data:image/png;base64,\"><script>x</script>";
  with_each_value_changed(outcomes(), kEvil, [](const Json& changed) {
    EXPECT_THAT(report_html(changed), Not(HasSubstr("<script")));
  });
  Json report = outcomes();
  report["worst_rows"] = Json::parse(
      R"([{"key": 1, "thumbnail": "https://example.com/a.png"}])", "a test");
  EXPECT_THAT(worst_rows_section(report), Not(HasSubstr("<img")));
}

TEST(HtmlOutcomes, AreMadeOfWhatThereIs) {
  for (const Json& instead :
       {Json(), Json("text"), Json(-1), Json(1e300), Json(Json::Array{}),
        Json(Json::Object{}), Json::parse("[[[1]]]", "a test")})
    with_each_value_changed(outcomes(), instead, [](const Json& changed) {
      EXPECT_THAT(report_html(changed), HasSubstr("</html>"));
    });
}

TEST(HtmlOutcomes, ShowHowFarPlacesAreOff) {
  const Json report = Json::parse(
      R"({"baseline": {"of": "train", "place": [50.5, 8.25],
                       "val_median_km": 40.0},
          "residuals": {"unit": "km", "mean": 7.5,
                        "histogram": {"from": 1.0, "to": 20.0,
                                      "counts": [3, 1]}},
          "worst_rows": [{"key": 7, "loss": 2.5, "km": 20.0,
                          "truth": [50.0, 8.0], "guess": [50.0, 8.5]}]})",
      "a test");
  const std::string text = residuals_section(report);
  EXPECT_THAT(text, HasSubstr("How far its places are off"));
  EXPECT_THAT(text, HasSubstr("the mean place, <data value=\"50.5\">50.5</data>"
                              ", <data value=\"8.25\">8.25</data> for every"));
  EXPECT_THAT(text, HasSubstr("</data> km (median)"));
  EXPECT_THAT(text, HasSubstr("20 km"));
  EXPECT_THAT(text, Not(HasSubstr("<circle")));
  const std::string worst = worst_rows_section(report);
  EXPECT_THAT(worst, HasSubstr("<th>km off</th>"));
  EXPECT_THAT(worst, HasSubstr("furthest off"));
  EXPECT_THAT(worst, Not(HasSubstr("tokens")));
}

TEST(HtmlOutcomes, ShowWhatAModelWritesTheLastValidationFirst) {
  const Json report = Json::parse(
      R"({"texts": [
           {"epoch": 0, "step": 10, "texts": [
             {"key": 1, "prompt": "Once", "text": " early"}]},
           {"epoch": 1, "step": 20, "texts": [
             {"key": 1, "prompt": "Once", "text": " <b>late"}]}],
          "worst_rows": [{"key": 7, "loss": 2.5, "tokens": 12}]})",
      "a test");
  const std::string text = texts_section(report);
  EXPECT_THAT(text, HasSubstr("<span>Once</span> &lt;b&gt;late"));
  EXPECT_LT(text.find("After epoch 2, step 20:"), text.find("late"));
  EXPECT_LT(text.find("late"),
            text.find("<details><summary>After epoch 1, step 10"));
  EXPECT_THAT(worst_rows_section(report), HasSubstr("<th>tokens</th>"));
  EXPECT_THAT(worst_rows_section(report), Not(HasSubstr("<th>truth</th>")));
  EXPECT_EQ(texts_section(outcomes()), "");
}

}  // namespace
}  // namespace penstock
