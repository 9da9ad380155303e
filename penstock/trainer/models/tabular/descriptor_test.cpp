#include "penstock/models/tabular/descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/job/job.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* const kFields = R"({
  "numbers": {"columns": ["a", "b"], "standardize": true, "missing": "mask"},
  "colour": {"category": {"column": "c"}},
  "when": {"time": {"column": "t", "parts": ["hour"]}},
  "price": {"column": "p", "standardize": true},
  "paid": {"column": "q", "dtype": "bool"},
  "gaps": {"column": "g", "missing": "nan"},
  "list": {"json_set": {"column": "l", "keys": ["x"], "max": 3}}
})";

std::vector<Field> fields() {
  return parse_fields(Json::parse(kFields, "test"), "fields");
}

ModelSpec model_with(const std::string& settings) {
  Json section = Json::parse(R"({"kind": "tabular")" + settings + "}", "test");
  return parse_model(&section, fields());
}

std::string refusal(const std::string& settings) {
  try {
    model_with(settings);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "nothing was refused";
}

const std::string kInputs = R"(, "inputs": ["numbers", "colour"])";

const Field& field(const std::string& name) {
  static const std::vector<Field> all = fields();
  return *std::ranges::find(all, name, &Field::name);
}

TEST(Tabular, PredictsFromTheFieldsThatAreNamedOrFromAllOthers) {
  ModelSpec model = model_with(R"(, "target": "price")" + kInputs);
  std::vector<std::string> names;
  for (const Field& input : inputs_of(tabular_of(model), fields()))
    names.push_back(input.name);
  EXPECT_THAT(names, ElementsAre("numbers", "colour"));
  Tabular all{.target = "price"};
  EXPECT_EQ(inputs_of(all, fields()).size(), 6u);
}

TEST(Tabular, TheTargetDecidesWhetherThereAreClasses) {
  EXPECT_TRUE(classifies({}, field("colour")));
  EXPECT_TRUE(classifies({}, field("paid")));
  EXPECT_FALSE(classifies({}, field("price")));
  ModelSpec model =
      model_with(R"(, "target": "paid", "task": "regression")" + kInputs);
  EXPECT_FALSE(classifies(tabular_of(model), field("paid")));
}

TEST(Tabular, AVectorGrowsWithTheSquareRootOfTheClasses) {
  EXPECT_EQ(embedding_width(1), 2);
  EXPECT_EQ(embedding_width(3), 4);
  EXPECT_EQ(embedding_width(100), 20);
  EXPECT_EQ(embedding_width(1'000'000), 64);
}

TEST(Tabular, NamesTheFieldThatItCannotUse) {
  EXPECT_THAT(refusal(""), HasSubstr("model.target"));
  EXPECT_THAT(refusal(R"(, "target": "prise")"),
              HasSubstr("there is no field 'prise'"));
  EXPECT_THAT(refusal(R"(, "target": "price", "inputs": ["colours"])"),
              HasSubstr("there is no field 'colours'"));
  EXPECT_THAT(refusal(R"(, "target": "price", "inputs": ["price"])"),
              HasSubstr("is the target"));
  EXPECT_THAT(refusal(R"(, "target": "price", "inputs": ["colour", "colour"])"),
              HasSubstr("'colour' appears twice"));
  EXPECT_THAT(refusal(R"(, "target": "price", "inputs": ["list"])"),
              HasSubstr("'list' is neither a category nor a row of numbers"));
  EXPECT_THAT(refusal(R"(, "target": "price", "inputs": ["gaps"])"),
              HasSubstr("missing values of field 'gaps' are NaN"));
}

TEST(Tabular, RefusesATargetThatIsNeitherAClassNorANumber) {
  EXPECT_THAT(refusal(R"(, "target": "list")" + kInputs),
              HasSubstr("'list' is neither a category nor a number"));
  EXPECT_THAT(refusal(R"(, "target": "when")" + kInputs),
              HasSubstr("'when' is neither a category nor a number"));
  EXPECT_THAT(refusal(R"(, "target": "numbers", "inputs": ["colour"])"),
              HasSubstr("holds 2 columns, expected one number"));
  EXPECT_THAT(refusal(R"(, "target": "gaps")" + kInputs),
              HasSubstr("no prediction can be compared with"));
}

TEST(Tabular, RefusesATaskThatIsNotTheTargets) {
  EXPECT_THAT(
      refusal(R"(, "target": "price", "task": "classification")" + kInputs),
      HasSubstr("'price' holds numbers, expected a category"));
  EXPECT_THAT(refusal(R"(, "target": "colour", "task": "regression")" +
                      kInputs.substr(0, 0)),
              HasSubstr("'colour' is a category"));
}

TEST(Tabular, RefusesAJobOfTheTargetAlone) {
  Json section = Json::parse(R"({"kind": "tabular", "target": "p"})", "test");
  Json one = Json::parse(R"({"p": {"column": "p"}})", "test");
  try {
    parse_model(&section, parse_fields(one, "fields"));
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the target is the only field"));
  }
}

}  // namespace
}  // namespace penstock
