#include "penstock/trainer/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace penstock {
namespace {

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

TEST(TabularMetrics, WithoutARowSayNothing) {
  EXPECT_TRUE(class_metrics({}, 2).object().empty());
  EXPECT_TRUE(number_metrics({}, 1).object().empty());
}

TEST(TabularMetrics, OfTwoClasses) {
  // By score: 0, 1, 0, 1, 1. Of the six pairs of a first and a second one is
  // the wrong way round.
  std::vector<Outcome> rows = {{.loss = 1, .truth = 0, .guess = 0, .score = -3},
                               {.loss = 2, .truth = 1, .guess = 0, .score = -1},
                               {.loss = 3, .truth = 0, .guess = 1, .score = 1},
                               {.loss = 4, .truth = 1, .guess = 1, .score = 2},
                               {.loss = 5, .truth = 1, .guess = 1, .score = 4}};
  Json json = class_metrics(rows, 2);
  EXPECT_DOUBLE_EQ(number(json, "val_loss"), 3);
  EXPECT_DOUBLE_EQ(number(json, "val_accuracy"), 0.6);
  EXPECT_DOUBLE_EQ(number(json, "val_auc"), 5.0 / 6);
  // First: 1 right of 2 said and 2 there; second: 2 right of 3 and 3.
  EXPECT_DOUBLE_EQ(number(json, "val_macro_f1"), (0.5 + 2.0 / 3) / 2);
}

TEST(TabularMetrics, ATieCountsHalfAndOneClassAloneHasNoAuc) {
  std::vector<Outcome> rows = {{.truth = 0, .score = 1},
                               {.truth = 1, .guess = 1, .score = 1},
                               {.truth = 1, .guess = 1, .score = 2},
                               {.truth = 0, .score = 0}};
  EXPECT_DOUBLE_EQ(number(class_metrics(rows, 2), "val_auc"), 3.5 / 4);
  EXPECT_TRUE(class_metrics(std::span(rows).subspan(1, 2), 2)
                  .find("val_auc")
                  ->is_null());
}

TEST(TabularMetrics, OfMoreClassesLeaveOutWhatNoRowHasOrIsSaidToHave) {
  std::vector<Outcome> rows = {{.truth = 0, .guess = 0},
                               {.truth = 2, .guess = 0},
                               {.truth = 2, .guess = 2}};
  Json json = class_metrics(rows, 5);
  EXPECT_EQ(json.find("val_auc"), nullptr);
  EXPECT_DOUBLE_EQ(number(json, "val_accuracy"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(number(json, "val_macro_f1"), (2.0 / 3 + 2.0 / 3) / 2);
}

TEST(TabularMetrics, OfNumbersAreInTheirOwnUnit) {
  std::vector<Outcome> rows = {{.loss = 1, .truth = 1, .guess = 2},
                               {.loss = 9, .truth = 1, .guess = -2}};
  Json json = number_metrics(rows, 10);
  EXPECT_DOUBLE_EQ(number(json, "val_loss"), 5);
  EXPECT_DOUBLE_EQ(number(json, "val_rmse"), 10 * std::sqrt(5));
  EXPECT_DOUBLE_EQ(number(json, "val_mae"), 20);
}

TEST(Metrics, BalanceCountsEachClassOnceHoweverOftenItComes) {
  // Nine rows of class 0, all right; of class 1 one of two; of class 2 none.
  std::vector<Outcome> rows(9, Outcome{.truth = 0, .guess = 0});
  rows.push_back({.truth = 1, .guess = 1});
  rows.push_back({.truth = 1, .guess = 0, .before = 2});
  Json seen = balance_metrics(rows, 3);
  EXPECT_DOUBLE_EQ(seen.find("val_balanced_accuracy")->number(), 0.75);
  EXPECT_DOUBLE_EQ(seen.find("val_least_recall")->number(), 0.5);
  EXPECT_DOUBLE_EQ(top_share(rows, 1), 10.0 / 11);
  EXPECT_DOUBLE_EQ(top_share(rows, 3), 1);
  EXPECT_TRUE(balance_metrics({}, 3).object().empty());
}

}  // namespace
}  // namespace penstock
