#include "penstock/trainer/outcome_details.h"

#include <gtest/gtest.h>

#include <cmath>

namespace penstock {
namespace {

Outcome row(double loss, double truth, double guess, std::int64_t sample) {
  return {.loss = static_cast<float>(loss),
          .truth = static_cast<float>(truth),
          .guess = static_cast<float>(guess),
          .sample = sample};
}

TEST(OutcomeDetails, OfClassesCountWhatIsTakenForWhat) {
  const std::vector<Outcome> rows = {row(0.1, 0, 0, 10), row(0.2, 0, 0, 11),
                                     row(3, 0, 1, 12), row(0.3, 1, 1, 13),
                                     row(5, 2, 0, 14)};
  const Json json = class_details(rows, 3, {.counts = {1, 3, 0}});
  EXPECT_EQ(json.find("confusion")->dump(),
            R"({"classes": [0, 1, 2], "others": 0, )"
            R"("counts": [[2, 1, 0], [0, 1, 0], [1, 0, 0]]})");
  EXPECT_EQ(json.find("by_class")->array()[0].dump(),
            R"({"class": 0, "rows": 3, "precision": 0.6666666666666666, )"
            R"("recall": 0.6666666666666666})");
  EXPECT_EQ(json.find("by_class")->array()[2].dump(),
            R"({"class": 2, "rows": 1, "precision": null, "recall": 0.0})");
  EXPECT_EQ(json.find("worst")->array()[0].dump(),
            R"({"sample": 14, "loss": 5.0, "truth": 2, "guess": 0})");
  EXPECT_EQ(json.find("worst")->array().size(), 5u);
  // Class 1 is the most frequent of the train rows, and no row has class 2.
  EXPECT_EQ(json.find("baseline")->dump(),
            R"({"of": "train", "class": 1, "val_accuracy": 0.2, )"
            R"("val_loss": null})");
  EXPECT_TRUE(class_details({}, 3, {}).is_null());
}

TEST(OutcomeDetails, WithoutCountsOfTheTrainRowsTheHeldOutOnesAreTheBaseline) {
  const std::vector<Outcome> rows = {row(1, 0, 0, 0), row(1, 0, 1, 1),
                                     row(1, 0, 1, 2), row(1, 1, 1, 3)};
  const Json json = class_details(rows, 2, {});
  const Json& baseline = *json.find("baseline");
  EXPECT_EQ(baseline.find("of")->string(), "val");
  EXPECT_EQ(baseline.find("val_accuracy")->number(), 0.75);
  EXPECT_NEAR(baseline.find("val_loss")->number(),
              -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-12);
}

TEST(OutcomeDetails, StayBoundedWithManyClassesAndRows) {
  std::vector<Outcome> rows;
  for (int i = 0; i < 5000; ++i)  // class c has more rows than class c + 1
    rows.push_back(row(i, i % (1 + i % 100), 0, i));
  const Json json = class_details(rows, 100, {});
  EXPECT_EQ(json.find("confusion")->find("classes")->array().size(), 40u);
  EXPECT_EQ(json.find("confusion")->find("others")->integer(), 60);
  EXPECT_EQ(json.find("confusion")->find("counts")->array().size(), 41u);
  EXPECT_EQ(json.find("by_class")->array().size(), 40u);
  EXPECT_EQ(json.find("worst")->array().size(), 20u);
  std::int64_t all = 0;
  for (const Json& line : json.find("confusion")->find("counts")->array())
    for (const Json& count : line.array()) all += count.integer();
  EXPECT_EQ(all, 5000);
  const Json numbers = number_details(rows, {});
  EXPECT_LE(numbers.find("residuals")->find("points")->array().size(), 400u);
}

TEST(OutcomeDetails, OfNumbersAreInTheirOwnUnit) {
  // Standardised: 100 is the mean of the train rows, 10 their deviation.
  const std::vector<Outcome> rows = {row(0.25, 1, 1.5, 7), row(1, -1, 0, 8)};
  const Json json = number_details(rows, {.unit = 10, .zero = 100});
  const Json& baseline = *json.find("baseline");
  EXPECT_EQ(baseline.find("mean")->number(), 100);
  EXPECT_EQ(baseline.find("val_rmse")->number(), 10);
  EXPECT_EQ(baseline.find("val_mae")->number(), 10);
  const Json& residuals = *json.find("residuals");
  EXPECT_EQ(residuals.find("mean")->number(), 7.5);
  EXPECT_EQ(residuals.find("points")->dump(),
            "[[110.0, 115.0], [90.0, 100.0]]");
  EXPECT_EQ(residuals.find("histogram")->find("from")->number(), 5);
  EXPECT_EQ(residuals.find("histogram")->find("to")->number(), 10);
  EXPECT_EQ(json.find("worst")->array()[0].dump(),
            R"({"sample": 8, "loss": 1.0, "truth": 90.0, "guess": 100.0})");
  const Json unknown = number_details(rows, {.unit = 10, .known = false});
  EXPECT_EQ(unknown.find("baseline")->find("of")->string(), "val");
  EXPECT_EQ(unknown.find("baseline")->find("mean")->number(), 0);
}

TEST(OutcomeDetails, OfLabelsCountEachByItself) {
  const LabelOutcomes outcomes{.labels = 2,
                               .samples = {4, 5},
                               .losses = {0.5, 2},
                               .truths = {true, false, true, true},
                               .scores = {1, 1, -1, 1}};
  const Json json = label_details(outcomes);
  EXPECT_EQ(json.find("by_class")->dump(),
            R"([{"class": 0, "rows": 2, "precision": 1.0, "recall": 0.5}, )"
            R"({"class": 1, "rows": 1, "precision": 0.5, "recall": 1.0}])");
  EXPECT_EQ(json.find("worst")->array()[0].dump(),
            R"({"sample": 5, "loss": 2.0, "truth": [0, 1], "guess": [1]})");
}

TEST(OutcomeDetails, OfTextsListTheRowsOfTheHighestLossPerToken) {
  std::vector<TextOutcome> rows;
  for (int i = 0; i < 30; ++i)
    rows.push_back({.loss = i % 10 / 10.0, .tokens = 5 + i, .sample = i});
  const Json json = text_details(rows);
  ASSERT_EQ(json.find("worst")->array().size(), kWorstRows);
  EXPECT_EQ(json.find("worst")->array()[0].dump(),
            R"({"sample": 9, "loss": 0.9, "tokens": 14})");
  EXPECT_TRUE(text_details({}).is_null());
}

TEST(OutcomeDetails, OfPlacesCompareWithTheMeanOfTheHeldOutRowsIfNeedBe) {
  const std::vector<PlaceOutcome> rows = {
      {.km = 1, .latitude = 10, .longitude = 20, .sample = 3},
      {.km = 2, .latitude = 12, .longitude = 20, .sample = 4}};
  const Json json = place_details(rows, {});
  const Json& baseline = *json.find("baseline");
  EXPECT_EQ(baseline.find("of")->string(), "val");
  EXPECT_EQ(baseline.find("place")->dump(), "[11.0, 20.0]");
  EXPECT_NEAR(baseline.find("val_median_km")->number(), 111.195, 0.001);
  EXPECT_EQ(json.find("worst")->array()[0].find("sample")->integer(), 4);
  EXPECT_TRUE(place_details({}, {}).is_null());
}

}  // namespace
}  // namespace penstock
