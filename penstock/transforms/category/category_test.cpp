#include "penstock/transforms/category/category.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/transforms/fake/field_run.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string section(const std::string& more = "") {
  return R"({"category": {"column": "c")" + more + "}}";
}
const std::string kError = R"(, "unknown": "error")";

std::string refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "nothing was refused";
}

TEST(Category, ClassesAreTheSortedTextsFromZeroAndTheUnknownOneIsTheLast) {
  FieldRun run(section(), column_of({{"gentoo"}, {"adelie"}, {}, {"gentoo"}}));
  run.fit();
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(1, 0, 2, 1));
  EXPECT_THAT(run.tensors()[0].row_shape, IsEmpty());
  EXPECT_EQ(run.tensors()[0].dtype, Dtype::int64);
  EXPECT_EQ(run.statistics(), Json::parse(R"({"classes": ["adelie", "gentoo"],
      "counts": [1, 2], "unknown": 1, "missing": 1, "unknown_elsewhere": 0})",
                                          "test"));
}

TEST(Category, WholeNumbersThatAreStoredAsFloatsAreIntegers) {
  FieldRun run(section(), column_of<double>(ColumnType::float64,
                                            {{1}, {std::nan("")}, {-2}, {}}));
  run.fit();
  EXPECT_EQ(run.statistics(), Json::parse(R"({"classes": [-2, 1],
      "counts": [1, 1], "unknown": 2, "missing": 2, "unknown_elsewhere": 0})",
                                          "test"));
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(1, 2, 0, 2));
  FieldRun bad(section(kError),
               column_of<double>(ColumnType::float64,
                                 {{1}, {0.5}, {std::nan("")}, {1e300}}));
  ASSERT_EQ(bad.faults().size(), 3u);
  EXPECT_EQ(bad.faults()[0].row, 1);
  EXPECT_THAT(bad.faults()[0].why, HasSubstr("holds 0.5"));
  EXPECT_THAT(bad.faults()[1].why, HasSubstr("is NULL"));
  EXPECT_THAT(bad.faults()[2].why, HasSubstr("1e+300"));
}

TEST(Category, WithoutAnUnknownClassTheNumbersAreTheSame) {
  FieldRun run(section(kError), column_of({{"b"}, {"a"}, {""}, {"b"}}));
  run.fit();
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(2, 1, 0, 2));
  EXPECT_THAT(run.faults(), IsEmpty());
}

TEST(Category, WhatPartsOfTheRowsHoldIsCountedTogether) {
  constexpr std::int64_t kRows = 3 * FieldFit::kBlock + 7;
  std::vector<std::optional<std::string>> texts;
  for (std::int64_t row = 0; row < kRows; ++row)
    texts.push_back(row < FieldFit::kBlock ? "first part " : "other parts ");
  texts[1] = std::nullopt;
  texts.back() = "last";
  FieldRun run(section(), column_of(texts));
  run.fit();
  Json expected = Json::parse(R"({"classes": ["first part ", "last",
      "other parts "], "unknown": 1, "missing": 1, "unknown_elsewhere": 0})",
                              "test");
  expected["counts"] =
      Json(Json::Array{FieldFit::kBlock - 1, 1, kRows - FieldFit::kBlock - 1});
  for (const auto& [name, value] : expected.object())
    EXPECT_EQ(*run.statistics().find(name), value) << name;
  const std::vector<std::int64_t> classes = run.tensor<std::int64_t>();
  EXPECT_EQ(classes[0], 0);
  EXPECT_EQ(classes[1], 3);
  EXPECT_EQ(classes[kRows - 2], 2);
  EXPECT_EQ(classes[kRows - 1], 1);
}

TEST(Category, TheMostFrequentComesFirstAndOfEqualOnesTheSmaller) {
  FieldRun run(section(R"(, "order": "frequency")"),
               column_of({{"c"}, {"b"}, {"a"}, {"c"}, {"b"}, {"c"}, {"Z"}}));
  run.fit();
  EXPECT_EQ(run.statistics().find("classes")->dump(),
            R"(["c", "b", "Z", "a"])");
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(0, 1, 3, 0, 1, 0, 2));
}

TEST(Category, WhatIsRareOrOnlyOnTheOtherSideIsUnknown) {
  FieldRun run(section(R"(, "min_count": 2)"),
               column_of({{"a"}, {"b"}, {"a"}, {"new"}, {"b"}, {}, {"a"}, {}}));
  run.fit({1, 1, 1, 0, 0, 1, 0, 0});
  EXPECT_EQ(run.statistics(), Json::parse(R"({"classes": ["a"], "counts": [2],
      "unknown": 2, "missing": 2, "unknown_elsewhere": 3})",
                                          "test"));
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(0, 1, 0, 1, 1, 1, 0, 1));
}

TEST(Category, WhereNothingMayBeUnknownSuchARowIsBadAndNamed) {
  FieldRun run(section(kError), column_of({{"a"}, {}, {"new"}}));
  ASSERT_EQ(run.faults().size(), 1u);
  EXPECT_EQ(run.faults()[0].row, 1);
  EXPECT_THAT(run.faults()[0].why, HasSubstr("is NULL"));
  FieldRun sides(section(kError), column_of({{"a"}, {"new"}}));
  sides.fit({1, 0});
  ASSERT_EQ(sides.faults().size(), 1u);
  EXPECT_EQ(sides.faults()[0].row, 1);
  EXPECT_THAT(sides.faults()[0].why, HasSubstr("found \"new\""));
  EXPECT_EQ(sides.faults()[0].place, "c");
}

TEST(Category, IntegersOfAnyWidthSortAsNumbersAndAreTheSameClasses) {
  for (ColumnType type : {ColumnType::int64, ColumnType::number(Dtype::int8)}) {
    Column column{.type = type};
    for (int number : {10, -3, 9, 10})
      type == ColumnType::int64
          ? column.append_number(std::int64_t{number})
          : column.append_number(static_cast<std::int8_t>(number));
    FieldRun run(section(kError), std::move(column));
    run.fit();
    EXPECT_EQ(run.statistics().find("classes")->dump(), "[-3, 9, 10]");
    EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(2, 0, 1, 2));
    EXPECT_EQ(run.canonical()[0], std::string("\1\12\0\0\0\0\0\0\0", 9));
  }
}

TEST(Category, BooleansAreFalseThenTrue) {
  Column column{.type = ColumnType::boolean};
  for (bool value : {true, false, true}) column.append_boolean(value);
  FieldRun run(section(), std::move(column), {.boolean = true});
  run.fit();
  EXPECT_EQ(run.statistics().find("classes")->dump(), "[false, true]");
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(1, 0, 1));
}

TEST(Category, OneHotIsAOneInThePlaceOfTheClass) {
  FieldRun run(section(R"(, "one_hot": 3)"),
               column_of({{"b"}, {"a"}, {}, {"b"}}));
  run.fit();
  EXPECT_THAT(run.tensor<float>(),
              ElementsAre(0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0));
  EXPECT_THAT(run.tensors()[0].row_shape, ElementsAre(3));
  EXPECT_EQ(run.tensors()[0].dtype, Dtype::float32);
  EXPECT_EQ(run.statistics().find("classes")->dump(), R"(["a", "b"])");
  FieldRun wide(section(kError + R"(, "one_hot": 4)"),
                column_of({{"b"}, {"a"}}));
  wide.fit();
  EXPECT_THAT(wide.tensor<float>(), ElementsAre(0, 1, 0, 0, 1, 0, 0, 0));
}

TEST(Category, MoreClassesThanPlacesAreRefusedWithTheirNumber) {
  FieldRun run(section(R"(, "one_hot": 3)"), column_of({{"b"}, {"a"}, {"c"}}));
  EXPECT_THAT(refused([&] { run.fit(); }),
              HasSubstr("found 4 classes, including the unknown class, but"));
  FieldRun none(section(kError + R"(, "one_hot": 2)"),
                column_of({{"b"}, {"a"}, {"c"}}));
  EXPECT_THAT(refused([&] { none.fit(); }), HasSubstr("set one_hot to 3"));
  EXPECT_THAT(refused([] {
                FieldRun(section(R"(, "one_hot": 0)"), column_of({{"a"}}));
              }),
              HasSubstr("one_hot"));
}

// As a folder of folders does: their names are the classes, seen or not.
TEST(Category, ValuesThatTheSourceKnowsAreClassesWithoutAScan) {
  FieldRun run(R"({"category": {"column": "c", "unknown": "error"}})",
               column_of({"cat", "dog"}), {.values = {"bird", "cat", "dog"}});
  EXPECT_EQ(run.unfitted()->find("classes")->array().size(), 3U);
  run.encode(*run.unfitted());
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(1, 2));
  run.fit();
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(1, 2));
  FieldRun counted(R"({"category": {"column": "c", "order": "frequency"}})",
                   column_of({"cat", "dog"}),
                   {.values = {"bird", "cat", "dog"}});
  EXPECT_EQ(counted.unfitted(), std::nullopt);
}

// As a table with a dictionary does whose texts are declared.
TEST(Category, NumbersThatSayWhichOfTheKnownValuesARowHoldsAreRead) {
  const ColumnInfo sizes{.values = {"small", "medium", "large"}};
  auto codes = [&](const std::string& more,
                   std::vector<std::optional<std::int8_t>> rows) {
    return FieldRun(
        section(more),
        column_of<std::int8_t>(ColumnType::number(Dtype::int8), rows), sizes);
  };
  FieldRun run = codes("", {{2}, {}, {0}, {2}, {-1}});
  const auto classes = run.unfitted();
  EXPECT_EQ(classes->find("classes")->dump(), R"(["small", "medium", "large"])")
      << "in the order that was declared";
  run.encode(*classes);
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(2, 3, 0, 2, 3));
  run.fit();
  EXPECT_EQ(run.statistics(),
            Json::parse(R"({"classes": ["small", "medium", "large"],
                "counts": [1, 0, 2], "unknown": 2, "missing": 2,
                "unknown_elsewhere": 0})",
                        "test"));
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(2, 3, 0, 2, 3));
  FieldRun texts(section(),
                 column_of({{"large"}, {}, {"small"}, {"large"}, {}}));
  EXPECT_EQ(run.canonical(), texts.canonical()) << "to hashes they are texts";
  run.encode(Json::parse(R"({"classes": ["large"]})", "test"));
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(0, 1, 1, 0, 1))
      << "of a run before it";

  FieldRun counted = codes(R"(, "order": "frequency")", {{1}, {2}, {2}});
  EXPECT_EQ(counted.unfitted(), std::nullopt);
  counted.fit();
  EXPECT_THAT(counted.tensor<std::int64_t>(), ElementsAre(1, 0, 0));

  FieldRun bad = codes(kError, {{0}, {3}, {}, {-1}, {-2}});
  ASSERT_EQ(bad.faults().size(), 4U);
  EXPECT_THAT(bad.faults()[0].why, HasSubstr("found class 3, expected 0 to 2"));
  EXPECT_THAT(bad.faults()[1].why, HasSubstr("is NULL"));
  EXPECT_THAT(bad.faults()[2].why, HasSubstr("is NULL"));
  EXPECT_THAT(bad.faults()[3].why, HasSubstr("found class -2"));
}

TEST(Category, NamesOfClassesAreByNumberAndNullIsTheUnknownOne) {
  const Json statistics = Json::parse(R"({"classes": ["a", "b"]})", "test");
  auto names = [&](const std::string& field) {
    return Json(class_names(
                    parse_fields(Json::parse("{\"x\": " + field + "}", "test"),
                                 "fields")[0],
                    statistics))
        .dump();
  };
  EXPECT_EQ(names(section()), R"(["a", "b", null])");
  EXPECT_EQ(names(section(kError)), R"(["a", "b"])");
  EXPECT_EQ(names(R"({"multi_hot": {"column": "c", "size": 2}})"),
            R"(["a", "b"])");
  EXPECT_EQ(names(R"({"columns": ["c"]})"), "[]");
}

// What rows and runs of the numbering from 1 are told apart by.
TEST(Category, ARecipeSaysWhichClassIsTheUnknownOne) {
  auto recipe = [](const std::string& field) {
    return *parse_fields(Json::parse("{\"x\": " + field + "}", "test"),
                         "fields")[0]
                .kind->facts()
                .recipe.find("category");
  };
  for (const char* said :
       {"", R"(, "unknown": "class")", R"(, "unknown": "last")"})
    EXPECT_EQ(*recipe(section(said)).find("unknown"), Json("last"));
  EXPECT_EQ(*recipe(section(kError)).find("unknown"), Json("error"));
}

TEST(Category, SavedStatisticsGiveTheSameClasses) {
  FieldRun first(section(), column_of({{"b"}, {"a"}}));
  first.fit();
  FieldRun later(section(), column_of({{"a"}, {"z"}, {"b"}}));
  later.encode(Json::parse(first.statistics().dump(), "test"));
  EXPECT_THAT(later.tensor<std::int64_t>(), ElementsAre(0, 2, 1));
}

TEST(Category, DamagedStatisticsAreRefusedWithTheirPlace) {
  FieldRun run(section(), column_of({{"a"}}));
  for (const char* saved :
       {"{}", R"({"classes": 3})", R"({"classes": ["a", "a"]})",
        R"({"classes": [1]})", R"({"classes": [null]})"})
    EXPECT_THAT(refused([&] { run.encode(Json::parse(saved, "test")); }),
                HasSubstr("statistics.x.classes"))
        << saved;
}

TEST(Category, ListsAndTimesAreNoClasses) {
  EXPECT_THAT(refused([] {
                Column json = column_of({{"[1]"}});
                json.type = ColumnType::json;
                FieldRun(section(), std::move(json));
              }),
              HasSubstr("classes are texts, integers or booleans"));
  EXPECT_THAT(refused([] {
                FieldRun(section(), column_of({{"2026-01-01"}}),
                         {.timestamp = true});
              }),
              HasSubstr("fields.x.category.column"));
}

TEST(Category, SettingsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(refused([] {
                FieldRun(section(kError + R"(, "min_count": 2)"),
                         column_of({{"a"}}));
              }),
              HasSubstr("min_count"));
}

TEST(Category, FitsAreTheSameInAnyNumberOfParts) {
  std::vector<std::optional<std::string>> texts;
  for (int i = 0; i < 5000; ++i) texts.push_back(std::to_string(i * i % 97));
  FieldRun run(section(), column_of(texts));
  run.fit();
  const Json& classes = *run.statistics().find("classes");
  std::int64_t rows = 0;
  for (const Json& count : run.statistics().find("counts")->array())
    rows += count.integer();
  EXPECT_EQ(rows, 5000);
  const auto numbers = run.tensor<std::int64_t>();
  for (std::size_t i = 0; i < texts.size(); ++i)
    ASSERT_EQ(classes.array()[static_cast<std::size_t>(numbers[i])].string(),
              texts[i]);
}

}  // namespace
}  // namespace penstock
