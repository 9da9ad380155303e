#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "penstock/models/tabular/descriptor.h"
#include "penstock/trainer/fake/table_model.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSteps = TableModel::kSteps;

/// 400 rows: whether the fruit is ripe follows from its colour and its weight,
/// some weights are missing; a price follows too, and a row in forty has none.
std::string fruits() {
  std::string csv = "colour,grams,count,ripe,price,kind\n";
  for (int i = 0; i < 400; ++i) {
    const int colour = i % 3, grams = (i * 37) % 100;
    const bool ripe = colour == 1 || (colour == 0 && grams > 50);
    csv += std::string(colour == 0   ? "green"
                       : colour == 1 ? "red"
                                     : "") +
           "," + (i % 11 == 0 ? "" : std::to_string(grams)) + "," +
           std::to_string(i % 5) + "," + (ripe ? "yes" : "no") + "," +
           (i % 40 == 7 ? "" : std::to_string(grams * 2 + 10 * colour)) +
           ",only\n";
  }
  return csv;
}

Json job(const std::vector<std::string>& sets = {}) {
  Json json = Json::parse(R"({
    "fields": {
      "numbers": {"columns": ["grams", "count"], "standardize": true,
                  "missing": "mask"},
      "colour": {"category": {"column": "colour"}},
      "ripe": {"category": {"column": "ripe", "unknown": "error"}}},
    "split": {"train": 0.8, "val": 0.2},
    "loader": {"batch_size": 32},
    "model": {"kind": "tabular", "target": "ripe", "width": 16, "depth": 2},
    "train": {"lr": 0.01, "warmup_steps": 5, "threads": 1}})",
                          "test");
  for (const std::string& set : sets) apply_setting(json, set);
  return json;
}

/// Of the price, with a mask if none exists.
Json price_job(const std::vector<std::string>& sets = {}) {
  Json json = job(
      {R"(fields.price={"column": "price", "standardize": true, "missing": "mask"})",
       "model.target=price", R"(model.inputs=["numbers", "colour"])"});
  for (const std::string& set : sets) apply_setting(json, set);
  return json;
}

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

TEST(TabularModel, LearnsARuleThatNoConstantGuessReaches) {
  TableModel table(fruits(), job());
  auto model = table.stepper();
  EXPECT_TRUE(model->facts().has_model);
  Json before = table.validate(*model);
  EXPECT_NEAR(number(before, "val_loss"), std::log(2), 1e-6);
  EXPECT_EQ(number(before, "val_auc"), 0.5);
  std::vector<double> losses = table.take(*model, 0, kSteps);
  Json after = table.validate(*model);
  EXPECT_LT(losses.back(), losses.front() / 2);
  EXPECT_GT(number(after, "val_accuracy"), 0.9);
  EXPECT_GT(number(after, "val_auc"), 0.95);
  EXPECT_GT(number(after, "val_macro_f1"), 0.9);
}

TEST(TabularModel, LearnsANumberAndMeasuresItInItsOwnUnit) {
  TableModel table(fruits(), price_job());
  auto model = table.stepper();
  // Before anything is learned it says the mean of the train rows.
  Json before = table.validate(*model);
  const double unit =
      standardizations_from(table.fields().statistics_of("price"))[0].divisor;
  EXPECT_NEAR(number(before, "val_rmse"),
              unit * std::sqrt(number(before, "val_loss")), 1e-3);
  table.take(*model, 0, kSteps);
  Json after = table.validate(*model);
  EXPECT_LT(number(after, "val_rmse"), number(before, "val_rmse") / 2);
  EXPECT_LT(number(after, "val_mae"), number(after, "val_rmse") * 1.0001);
  EXPECT_EQ(after.find("val_accuracy"), nullptr);
}

TEST(TabularModel, GoesOnFromASavedStateBitForBit) {
  for (int threads : {1, 2}) {
    TableModel table(fruits(),
                     job({"train.threads=" + std::to_string(threads)}));
    auto whole = table.stepper();
    std::vector<double> losses = table.take(*whole, 0, kSteps);
    auto first = table.stepper();
    table.take(*first, 0, 17);
    ModelState saved = first->save();
    auto second = table.stepper();
    table.take(*second, 0, 3);  // all that this leaves is replaced
    second->restore(saved);
    std::vector<double> rest = table.take(*second, 17, kSteps);
    EXPECT_EQ(rest, std::vector(losses.begin() + 17, losses.end()));
    expect_same_bits(whole->save(), second->save());
    EXPECT_EQ(table.validate(*whole).dump(), table.validate(*second).dump());
  }
}

TEST(TabularModel, IsFixedByItsSeedAndLeavesOutWhatTheSeedSays) {
  TableModel table(fruits(), job());
  auto losses_with = [&](std::uint64_t seed, double dropout) {
    ModelSpec spec = table.job().model;
    std::any_cast<Tabular&>(spec.own).seed = seed;
    std::any_cast<Tabular&>(spec.own).dropout = dropout;
    return table.take(*table.stepper(spec), 0, 5);
  };
  EXPECT_EQ(losses_with(0, 0.5), losses_with(0, 0.5));
  EXPECT_NE(losses_with(0, 0.5), losses_with(1, 0.5));
  EXPECT_NE(losses_with(0, 0.5), losses_with(0, 0));
}

TEST(TabularModel, ValidationLeavesNoTraceInTheModel) {
  TableModel table(fruits(), job());
  auto quiet = table.stepper(), looked_at = table.stepper();
  table.take(*quiet, 0, 10);
  table.take(*looked_at, 0, 5);
  table.validate(*looked_at);
  table.take(*looked_at, 5, 10);
  expect_same_bits(quiet->save(), looked_at->save());
}

TEST(TabularModel, PaddingCountsForNothing) {
  for (const Json& job : {job(), price_job()}) {
    TableModel table(fruits(), job);
    auto exact = table.stepper(), padded = table.stepper();
    const std::int64_t steps =
        table.rows().rows_on(Side::train) / 32 + 1;  // the last one is short
    std::vector<double> losses = table.take(*exact, 0, steps, Tail::exact);
    std::vector<double> same = table.take(*padded, 0, steps, Tail::pad);
    ASSERT_EQ(losses.size(), same.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], same[i], 1e-4) << i;
    Json one = table.validate(*exact),
         other = table.validate(*exact, Tail::pad);
    for (const auto& [name, value] : one.object())
      EXPECT_NEAR(value.number(), number(other, name.c_str()), 1e-4) << name;
  }
}

TEST(TabularModel, ATargetThatIsUnknownCountsForNothing) {
  // Of ten rows the last two have no class: an unknown one, and none at all.
  std::string csv = "x,y\n";
  for (int i = 0; i < 40; ++i)
    csv += std::to_string(i) + "," +
           (i < 18   ? "a"
            : i < 36 ? "b"
            : i < 38 ? "rare"
                     : "") +
           "\n";
  TableModel table(csv, Json::parse(R"({
    "fields": {"x": {"column": "x", "standardize": true},
               "y": {"category": {"column": "y", "min_count": 5}}},
    "split": {"train": 0.5, "val": 0.5, "seed": 4},
    "loader": {"batch_size": 4},
    "model": {"kind": "tabular", "target": "y", "width": 8},
    "train": {"threads": 1}})",
                                    "test"));
  auto model = table.stepper();
  Json seen = table.validate(*model);
  // Two classes: the unknown one is not one of them, in loss and measures.
  EXPECT_NEAR(number(seen, "val_loss"), std::log(2), 1e-6);
  EXPECT_NE(seen.find("val_auc"), nullptr);
  EXPECT_EQ(model->save().json.find("classes")->integer(), 2);
}

TEST(TabularModel, TakesNumbersOfEveryWidthAndClassesOfAColumnOfBools) {
  for (const char* dtype : {"float64", "int64", "int32", "int16", "int8",
                            "uint32", "uint16", "uint8"}) {
    TableModel table(fruits(),
                     job({R"(fields.numbers={"column": "count", "dtype": ")" +
                          std::string(dtype) + "\"}"}));
    auto model = table.stepper();
    table.take(*model, 0, 2);
    EXPECT_EQ(model->save().json.find("inputs")->dump(),
              R"([{"name": "numbers", "numbers": 1}, )"
              R"({"name": "colour", "classes": 3}])")
        << dtype;
  }
  std::string csv = "x,y\n";
  for (int i = 0; i < 200; ++i)
    csv += std::to_string(i % 7) + "," + std::to_string(i % 7 > 3) + "\n";
  TableModel table(csv, Json::parse(R"({
    "fields": {"x": {"column": "x", "standardize": true},
               "y": {"column": "y", "dtype": "bool"}},
    "split": {"train": 0.8, "val": 0.2}, "loader": {"batch_size": 32},
    "model": {"kind": "tabular", "target": "y", "width": 16, "inputs": ["x"]},
    "train": {"threads": 1, "lr": 0.02}})",
                                    "test"));
  auto model = table.stepper();
  table.take(*model, 0, kSteps);
  EXPECT_EQ(number(table.validate(*model), "val_accuracy"), 1);
}

TEST(TabularModel, SavesWeightsAndBothMomentsByName) {
  TableModel table(fruits(), job());
  ModelState state = table.stepper()->save();
  std::vector<std::string> names;
  for (const NamedTensor& tensor : state.tensors) names.push_back(tensor.name);
  EXPECT_THAT(names,
              testing::IsSupersetOf({"model.classes.colour.weight",
                                     "model.block1.out.bias", "adamw.steps",
                                     "adamw.first_moment.answer.weight"}));
  EXPECT_EQ(state.json.find("kind")->string(), "tabular");
}

TEST(TabularModel, RefusesTheStateOfAnotherModel) {
  TableModel table(fruits(), job()), deep(fruits(), job({"model.depth=3"}));
  ModelState state = deep.stepper()->save();
  try {
    table.stepper()->restore(state);
    FAIL() << "it was restored";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "resume.other_model");
    EXPECT_THAT(error.what(), HasSubstr("model.depth: found 3, expected 2"));
  }
}

TEST(TabularModel, RefusesATargetOfOneClass) {
  TableModel table(fruits(),
                   job({R"(fields.kind={"category": {"column": "kind"}})",
                        "model.target=kind", R"(model.inputs=["numbers"])"}));
  try {
    table.stepper();
    FAIL() << "it was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "model.one_class");
    EXPECT_THAT(error.what(), HasSubstr("only one class, \"only\", in field "
                                        "'kind'"));
  }
}

}  // namespace
}  // namespace penstock
