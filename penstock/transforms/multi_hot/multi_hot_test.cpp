#include "penstock/transforms/multi_hot/multi_hot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"
#include "penstock/transforms/fake/field_run.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string section(const std::string& more = "", int size = 3) {
  return R"({"multi_hot": {"column": "c", "size": )" + std::to_string(size) +
         more + "}}";
}
const std::string kError = R"(, "unknown": "error")";

std::string refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "fields.multi_hot");
    return error.what();
  }
  return "nothing was refused";
}

TEST(MultiHot, EachLabelOfAListHasAPlace) {
  FieldRun run(section(), column_of({{R"(["dog", "cat"])"},
                                     {"[]"},
                                     {R"(["cat", "ant", "cat"])"},
                                     {R"([ "dog" ])"}}));
  run.fit();
  EXPECT_THAT(run.faults(), IsEmpty());
  EXPECT_THAT(run.tensor<float>(),
              ElementsAre(0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1));
  EXPECT_THAT(run.tensors()[0].row_shape, ElementsAre(3));
  EXPECT_EQ(run.tensors()[0].dtype, Dtype::float32);
  EXPECT_EQ(run.statistics(), Json::parse(R"({"classes": ["ant", "cat", "dog"],
      "counts": [1, 2, 2], "rows": 4, "unknown": 0})",
                                          "test"));
}

TEST(MultiHot, TextsMayHaveASeparator) {
  FieldRun run(section(R"(, "separator": "|")", 4),
               column_of({{"b|a"}, {""}, {" a | [x] "}, {"a||b"}}));
  ASSERT_EQ(run.faults().size(), 1U);
  EXPECT_EQ(run.faults()[0].row, 3);
  EXPECT_THAT(run.faults()[0].why, HasSubstr("between two '|'"));
  run.fit();
  EXPECT_EQ(run.statistics().find("classes")->dump(), R"(["[x]", "a", "b"])");
  const std::vector<float> found = run.tensor<float>();
  EXPECT_THAT(std::vector(found.begin(), found.begin() + 12),
              ElementsAre(0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0));
}

TEST(MultiHot, IntegersAreTakenAsTexts) {
  FieldRun texts(section(), column_of({{"[7, 10]"}, {"[7]"}}));
  texts.fit();
  Column lists{.type = ColumnType::list};
  lists.children.emplace_back().type = ColumnType::number(Dtype::int32);
  for (int number : {10, 7}) lists.children[0].append_number(number);
  lists.append_list();
  lists.children[0].append_number(7);
  lists.append_list();
  FieldRun numbers(section(), std::move(lists));
  numbers.fit();
  EXPECT_EQ(numbers.statistics(), texts.statistics());
  EXPECT_EQ(numbers.tensor<float>(), texts.tensor<float>());
  EXPECT_EQ(numbers.canonical(), texts.canonical());
}

TEST(MultiHot, WhatIsRareOrOnlyOnTheOtherSideIsLeftOutOrBad) {
  const std::vector<std::optional<std::string>> rows = {
      {R"(["a", "b"])"}, {R"(["a"])"}, {R"(["a", "new"])"}};
  FieldRun run(section(R"(, "min_count": 2)"), column_of(rows));
  run.fit({1, 1, 0});
  EXPECT_EQ(run.statistics(), Json::parse(R"({"classes": ["a"],
      "counts": [2], "rows": 2, "unknown": 1})",
                                          "test"));
  EXPECT_THAT(run.tensor<float>(), ElementsAre(1, 0, 0, 1, 0, 0, 1, 0, 0));
  FieldRun strict(section(kError), column_of(rows));
  strict.fit({1, 1, 0});
  ASSERT_EQ(strict.faults().size(), 1U);
  EXPECT_EQ(strict.faults()[0].row, 2);
  EXPECT_THAT(strict.faults()[0].why, HasSubstr("found \"new\""));
}

TEST(MultiHot, WhatHoldsNoListIsABadRow) {
  FieldRun run(
      section(),
      column_of(
          {{}, {"cat"}, {R"({"a": 1})"}, {R"([1.5])"}, {R"(["a", ["b"]])"}}));
  ASSERT_EQ(run.faults().size(), 5U);
  EXPECT_THAT(run.faults()[0].why, HasSubstr("is NULL"));
  EXPECT_THAT(run.faults()[1].why, HasSubstr("expected a list of labels"));
  EXPECT_THAT(run.faults()[2].why, HasSubstr("expected a list of labels"));
  EXPECT_THAT(run.faults()[3].why, HasSubstr("texts or integers"));
  EXPECT_THAT(run.faults()[4].why, HasSubstr("texts or integers"));
}

TEST(MultiHot, MoreLabelsThanPlacesAndOtherColumnsAreRefused) {
  FieldRun run(section("", 1), column_of({{R"(["a", "b"])"}}));
  EXPECT_THAT(refused([&] { run.fit(); }),
              HasSubstr("found 2 labels, but \"size\" is 1"));
  Column numbers{.type = ColumnType::float64};
  numbers.append_float64(1);
  EXPECT_THAT(refused([&] { FieldRun(section(), std::move(numbers)); }),
              HasSubstr("expected lists of labels"));
}

}  // namespace
}  // namespace penstock
