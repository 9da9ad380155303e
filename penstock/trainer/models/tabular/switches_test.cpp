#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penstock/trainer/fake/table_model.h"

namespace penstock {
namespace {

constexpr std::int64_t kSteps = TableModel::kSteps;

/// 320 rows: y follows from x.
std::string rows() {
  std::string csv = "x,y,big\n";
  for (int i = 0; i < 320; ++i) {
    const int x = (i * 37) % 100;
    csv += std::to_string(x) + "," + std::to_string(3 * x) + "," +
           (x > 50 ? "yes" : "no") + "\n";
  }
  return csv;
}

Json job(const std::vector<std::string>& sets) {
  Json json = Json::parse(R"({
    "fields": {
      "x": {"columns": ["x"], "standardize": true},
      "y": {"column": "y", "standardize": true},
      "big": {"category": {"column": "big", "unknown": "error"}}},
    "split": {"train": 0.8, "val": 0.2},
    "loader": {"batch_size": 32},
    "model": {"kind": "tabular", "target": "big", "inputs": ["x"],
              "width": 16, "depth": 2},
    "train": {"lr": 0.01, "warmup_steps": 5, "threads": 1}})",
                          "test");
  for (const std::string& set : sets) apply_setting(json, set);
  return json;
}

Json in_force(const Stepper& stepper) {
  Json all;
  for (const SwitchInForce& one : stepper.facts().in_force) {
    Json& entry = all[one.name];
    entry["asked"] = one.asked;
    entry["got"] = one.got;
    entry["why"] = one.why;
  }
  return all;
}

double loss_of(const TableModel& table, Stepper& stepper) {
  return table.validate(stepper).find("val_loss")->number();
}

TEST(TabularSwitches, EveryOneGoesOnFromASavedStateBitForBit) {
  for (const char* set :
       {"train.precision=bfloat16", "train.precision=float16",
        "train.accumulate=3", "train.ema=0.9", "train.label_smoothing=0.1"}) {
    SCOPED_TRACE(set);
    TableModel table(rows(), job({set}));
    auto whole = table.stepper();
    std::vector<double> losses = table.take(*whole, 0, kSteps);
    auto first = table.stepper();
    table.take(*first, 0, 17);  // no multiple of 3
    ModelState saved = first->save();
    auto second = table.stepper();
    table.take(*second, 0, 4);
    second->restore(saved);
    EXPECT_EQ(table.take(*second, 17, kSteps),
              std::vector(losses.begin() + 17, losses.end()));
    expect_same_bits(whole->save(), second->save());
    EXPECT_LT(losses.back(), losses.front() / 2);
  }
}

TEST(TabularSwitches, LowerPrecisionLearnsNearlyTheSame) {
  TableModel exact(rows(), job({}));
  auto model = exact.stepper();
  exact.take(*model, 0, kSteps);
  for (const char* set :
       {"train.precision=bfloat16", "train.precision=float16"}) {
    TableModel table(rows(), job({set}));
    auto other = table.stepper();
    table.take(*other, 0, kSteps);
    EXPECT_NE(loss_of(table, *other), loss_of(exact, *model));
    EXPECT_NEAR(loss_of(table, *other), loss_of(exact, *model), 0.1);
  }
}

TEST(TabularSwitches, StepsTogetherAreOneOfAllTheirRows) {
  const std::vector<std::string> sets = {
      "train.clip_norm=0", "train.warmup_steps=0", "model.dropout=0"};
  std::vector<std::string> two = sets, one = sets;
  two.emplace_back("train.accumulate=2");
  one.emplace_back("loader.batch_size=64");
  TableModel halves(rows(), job(two)), whole(rows(), job(one));
  auto by_two = halves.stepper();
  auto by_one = whole.stepper();
  halves.take(*by_two, 0, 1);
  EXPECT_NEAR(loss_of(halves, *by_two), std::log(2), 1e-6);  // not moved yet
  halves.take(*by_two, 1, 2);
  whole.take(*by_one, 0, 1);
  EXPECT_NEAR(loss_of(halves, *by_two), loss_of(whole, *by_one), 2e-3);
}

TEST(TabularSwitches, TheAverageIsWhatIsValidatedAndNotWhatLearns) {
  TableModel plain(rows(), job({})), averaged(rows(), job({"train.ema=0.9"}));
  auto one = plain.stepper();
  auto other = averaged.stepper();
  std::vector<double> losses = plain.take(*one, 0, 10);
  EXPECT_EQ(averaged.take(*other, 0, 10), losses);
  EXPECT_GT(loss_of(averaged, *other), loss_of(plain, *one));
  EXPECT_EQ(averaged.take(*other, 10, 20), plain.take(*one, 10, 20));
}

TEST(TabularSwitches, SmoothingChangesWhatIsLearnedAndNotWhatIsMeasured) {
  TableModel plain(rows(), job({})),
      smooth(rows(), job({"train.label_smoothing=0.2"}));
  auto one = plain.stepper();
  auto other = smooth.stepper();
  EXPECT_EQ(loss_of(plain, *one), loss_of(smooth, *other));
  plain.take(*one, 0, kSteps);
  EXPECT_LT(plain.take(*one, 0, 1)[0] + 0.1,
            smooth.take(*other, 0, kSteps)[59]);
}

TEST(TabularSwitches, SayWhatIsInForceAndWhyNot) {
  TableModel table(rows(),
                   job({"model.target=y", "train.precision=bfloat16",
                        "train.tf32=true", "train.label_smoothing=0.1"}));
  Json found = in_force(*table.stepper());
  EXPECT_EQ(found.find("precision")->dump(),
            R"({"asked": "bfloat16", "got": "bfloat16", "why": ""})");
  EXPECT_EQ(
      found.find("tf32")->dump(),
      R"({"asked": true, "got": false, "why": "the cpu does not support it"})");
  EXPECT_EQ(*found.find("label_smoothing")->find("got"), Json(0.0));
  EXPECT_THAT(found.find("label_smoothing")->find("why")->string(),
              testing::HasSubstr("not a class"));
  EXPECT_EQ(found.object().size(), 6u);
}

}  // namespace
}  // namespace penstock
