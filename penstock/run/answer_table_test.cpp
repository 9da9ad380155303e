#include "penstock/run/answer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "penstock/run/text_table.h"

namespace penstock {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string csv_of(AnswerTable& table) {
  return heading_text(TextFormat::csv, table.columns()) +
         rows_text(TextFormat::csv, table.columns(), table.take());
}

TEST(AnswerTable, NamesTheLikeliestClassAndTheShareOfEach) {
  AnswerTable table({.of = AnswerFacts::Of::one_class, .names = {"a", "b, c"}},
                    ColumnType::int64);
  table.add(7, std::vector{0.25, 0.75});
  table.add(8, std::vector{0.5, 0.5});
  EXPECT_EQ(csv_of(table),
            "key,prediction,p_a,\"p_b, c\"\n"
            "7,\"b, c\",0.25,0.75\n"
            "8,a,0.5,0.5\n");
}

TEST(AnswerTable, KeepsTheTypeOfClasses) {
  AnswerTable numbers({.of = AnswerFacts::Of::one_class, .names = {3, 5}},
                      ColumnType::int64);
  EXPECT_EQ(numbers.columns()[1].type, ColumnType::int64);
  numbers.add(0, std::vector{0.25, 0.75});
  EXPECT_EQ(rows_text(TextFormat::jsonl, numbers.columns(), numbers.take()),
            "{\"key\": 0, \"prediction\": 5, \"p_3\": 0.25, \"p_5\": 0.75}\n");
  AnswerTable flags({.of = AnswerFacts::Of::one_class, .names = {false, true}},
                    ColumnType::int64);
  flags.add(0, std::vector{0.25, 0.75});
  EXPECT_EQ(csv_of(flags), "key,prediction,p_false,p_true\n0,true,0.25,0.75\n");
}

TEST(AnswerTable, ListsTheLabelsThatAreMoreLikelyThanNot) {
  AnswerTable table({.of = AnswerFacts::Of::labels, .names = {"x", "y", "z"}},
                    ColumnType::text);
  table.add("k", std::vector{0.75, 0.25, 1.0});
  EXPECT_EQ(rows_text(TextFormat::jsonl, table.columns(), table.take()),
            "{\"key\": \"k\", \"prediction\": [\"x\", \"z\"], \"p_x\": 0.75, "
            "\"p_y\": 0.25, \"p_z\": 1}\n");
}

TEST(AnswerTable, HasAColumnForEachNumber) {
  AnswerTable table({.names = {"lat", "lon"}}, ColumnType::int64);
  table.add(1, std::vector{50.123456789012, kNaN});
  EXPECT_EQ(csv_of(table), "key,lat,lon\n1,50.123456789012,\n");
  EXPECT_EQ(table.take().rows, 0);
}

TEST(TextTable, TellsAnEmptyTextFromAMissingOne) {
  const std::vector<NewColumn> columns = {
      {.name = "a", .type = ColumnType::text},
      {.name = "b\t", .type = ColumnType::text}};
  Block block;
  block.rows = 2;
  block.columns.resize(2);
  for (Column& column : block.columns) column.type = ColumnType::text;
  block.columns[0].append_text("");
  block.columns[0].append_null();
  block.columns[1].append_text("say \"so\"\n");
  block.columns[1].append_text("x,y");
  EXPECT_EQ(heading_text(TextFormat::tsv, columns), "a\t\"b\t\"\n");
  EXPECT_EQ(rows_text(TextFormat::csv, columns, block),
            "\"\",\"say \"\"so\"\"\n\"\n,\"x,y\"\n");
  EXPECT_EQ(rows_text(TextFormat::tsv, columns, block),
            "\"\"\t\"say \"\"so\"\"\n\"\n\tx,y\n");
  EXPECT_EQ(rows_text(TextFormat::jsonl, columns, block),
            "{\"a\": \"\", \"b\\t\": \"say \\\"so\\\"\\n\"}\n"
            "{\"a\": null, \"b\\t\": \"x,y\"}\n");
}

}  // namespace
}  // namespace penstock
