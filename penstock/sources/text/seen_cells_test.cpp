// What a table in CSV is asked, or told, by which its columns would be taken
// for something else in silence.
#include "penstock/sources/text/seen_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sources/test_reading.h"
#include "penstock/sources/text/test_text.h"

namespace penstock::text {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SeenCellsTest : public TextTest {
 protected:
  Schema schema(const std::string& text,
                const Json& more = Json(Json::Object{})) {
    Json section = files::section_of("csv", folder_.write("t.csv", text));
    for (const auto& [key, value] : more.object()) section[key] = value;
    return read_schema(parse_source_spec(section, "source"));
  }
  /// "column: why; next" of each.
  std::vector<std::string> doubts(const std::string& text,
                                  const Json& more = Json(Json::Object{})) {
    std::vector<std::string> all;
    for (const Doubt& doubt : schema(text, more).doubts)
      all.push_back(doubt.column + ": " + doubt.why + "; " + doubt.next);
    return all;
  }
  std::string decimal_question(const std::string& text,
                               const Json& more = Json(Json::Object{})) {
    const Error asked = error_of([&] { schema(text, more); });
    EXPECT_EQ(asked.parts().code, "source.decimal");
    return asked.what();
  }
  /// 100 ages, of which every n-th is another text.
  static std::string ages(const std::string& other, int every = 100) {
    std::string text = "age,y\n";
    for (int row = 0; row < 100; ++row)
      text += (row % every == 7 ? other : std::to_string(row % 90)) + ",u\n";
    return text;
  }
};

TEST_F(SeenCellsTest, AskWhatAStrayTextAmongNumbersIs) {
  EXPECT_THAT(
      doubts(ages("?")),
      ElementsAre(AllOf(
          HasSubstr("age: 99 of its 100 cells are numbers, and 1 is not: text "
                    "'?' ("),
          HasSubstr("t.csv:9)"), HasSubstr("t.csv?na=,?' for no value"),
          HasSubstr(R"({"age":"text"} as columns for classes)"))));
  EXPECT_THAT(doubts(ages("7%", 10)),
              ElementsAre(AllOf(
                  HasSubstr("90 of its 100 cells are numbers, and 10 are not, "
                            "first text '7%'"),
                  HasSubstr(R"(columns={"age":"int64"}&on_bad=skip')"))));
  EXPECT_THAT(
      doubts(ages("\"?\"")),
      ElementsAre(AllOf(HasSubstr("text '?'"), HasSubstr("on_bad=skip"))))
      << "in quotation marks it cannot be missing";
}

TEST_F(SeenCellsTest, LeaveTheOthersNumbersWhereNumbersAreWanted) {
  folder_.write("t.csv", ages("?"));
  const std::vector<std::string> rows = files::shown_rows(
      files::section_of("csv", folder_.path("t.csv")), {"age"}, ReadAs::number);
  ASSERT_EQ(rows.size(), 100u);
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (row == 7)
      EXPECT_THAT(rows[row], HasSubstr("'?'"));
    else
      EXPECT_EQ(rows[row], std::to_string(row % 90) + ".0");
}

TEST_F(SeenCellsTest, AskNothingThatWasAnswered) {
  EXPECT_THAT(doubts(ages("?"), with("na", Json(Json::Array{"", "?"}))),
              IsEmpty());
  for (const char* type : {"text", "float64"})
    EXPECT_THAT(
        doubts(ages("?"), with("columns", Json(Json::Object{{"age", type}}))),
        IsEmpty());
  EXPECT_THAT(doubts(ages("?", 9)), IsEmpty()) << "one of nine";
  EXPECT_THAT(doubts("a,b\n1,x\n2,x\n?,x\n"), IsEmpty()) << "too few";
  EXPECT_THAT(doubts(ages("NA")), IsEmpty());
}

TEST_F(SeenCellsTest, CountOverAllFiles) {
  folder_.write("many/1.csv", ages("1"));
  folder_.write("many/2.csv", "age,y\n1,u\nunknown,v\n");
  const Schema all = read_schema(parse_source_spec(
      files::section_of("csv", folder_.path("many")), "source"));
  ASSERT_EQ(all.doubts.size(), 1u);
  EXPECT_THAT(all.doubts[0].why,
              AllOf(HasSubstr("101 of its 102 cells"), HasSubstr("2.csv:3")));
  EXPECT_THAT(all.doubts[0].next,
              HasSubstr("'csv:" + folder_.path("many") + "?na=,unknown'"));
}

TEST_F(SeenCellsTest, AskAboutThousandsThatAreGrouped) {
  EXPECT_THAT(doubts(ages("\"1,000\"")),
              ElementsAre(AllOf(HasSubstr("text '1,000'"),
                                HasSubstr("t.csv?thousands=,' for numbers"))));
  EXPECT_THAT(doubts(ages("\"1,000\""), with("thousands", ",")), IsEmpty());
  EXPECT_THAT(types("csv", folder_.path("t.csv"), with("thousands", ",")),
              ElementsAre("age int64", "y text"));
  EXPECT_THAT(doubts(ages("\"1,000,000.5\"")),
              ElementsAre(HasSubstr("thousands=,")));
  EXPECT_THAT(doubts(ages("1.234.567"), with("decimal", ",")),
              ElementsAre(HasSubstr("?decimal=,&thousands=.' for numbers")));
}

TEST_F(SeenCellsTest, ReadThousands) {
  EXPECT_THAT(csv("a\n\"1,000\"\n\"-12,345,678\"\n7\n", with("thousands", ",")),
              ElementsAre("1000.0", "-12345678.0", "7.0"));
  EXPECT_THAT(csv("a\n\"1,000.5\"\n+2\n", with("thousands", ",")),
              ElementsAre("1000.5", "2.0"));
  Json german = with("thousands", ".");
  german["decimal"] = ",";
  EXPECT_THAT(csv("a;b\n1.234,5;1.000\n-0,5;12\n", german),
              ElementsAre("1234.5 | 1000.0", "-0.5 | 12.0"));
  EXPECT_THAT(
      types("csv", folder_.write("t.csv", "a;b\n1.23,5;1.0000\n"), german),
      ElementsAre("a text", "b text"))
      << "groups of three digits";
  EXPECT_THAT(csv("a\n1\n", with("thousands", ".")),
              ElementsAre(HasSubstr("the mark before a fraction, too")));
}

TEST_F(SeenCellsTest, AskAboutDecimalCommasWhateverTheDelimiter) {
  EXPECT_THAT(decimal_question("a,b\n\"0,5\",x\n\"1,5\",y\n"),
              HasSubstr("t.csv?decimal=,'"));
  EXPECT_THAT(csv("a,b\n\"0,5\",x\n\"1,5\",y\n", with("decimal", ",")),
              ElementsAre("0.5 | x", "1.5 | y"));
  EXPECT_THAT(decimal_question("a;b\n1.234,5;x\n0,5;y\n7;z\n"),
              AllOf(HasSubstr("?decimal=,&thousands=.'"),
                    HasSubstr(R"("decimal": ",", "thousands": ".")")));
  Json both = with("decimal", ",");
  both["delimiter"] = ",";
  EXPECT_THAT(csv("a,b\n\"0,5\",x\n", both), ElementsAre("0.5 | x"));
  std::string text = "a;b\n";
  for (int row = 0; row < 20; ++row)
    text += (row == 3 ? "-" : std::to_string(row) + ",5") + ";x\n";
  EXPECT_THAT(doubts(text), ElementsAre(HasSubstr("?decimal=,&na=,-'")));
}

TEST_F(SeenCellsTest, AnswersKeepTheSettingsThatAreThere) {
  std::string text = "a|b\n";
  for (int row = 0; row < 20; ++row)
    text += (row == 3 ? "?" : std::to_string(row)) + "|" +
            (row == 5 ? "7%" : std::to_string(row)) + "\n";
  Json more = with("delimiter", "|");
  more["encoding"] = "latin1";
  more["na"] = Json::Array{"", "x"};
  more["on_bad"] = "skip";
  EXPECT_THAT(
      doubts(text, more),
      ElementsAre(
          HasSubstr("?delimiter=|&encoding=latin1&on_bad=skip&na=,x,?'"),
          HasSubstr("?delimiter=|&encoding=latin1&na=,x&columns="
                    "{\"b\":\"int64\"}&on_bad=skip'")));
  more["columns"]["a"] = "text";
  EXPECT_THAT(doubts(text, more),
              ElementsAre(HasSubstr("columns={\"a\":\"text\",\"b\":\"int64\"}"
                                    "&on_bad=skip'")));
  EXPECT_THAT(
      decimal_question("a;b\n0,5;x\n1,5;y\n", with("encoding", "latin1")),
      HasSubstr("?encoding=latin1&decimal=,'"));
  EXPECT_THAT(
      doubts("5.1\t3.5\n4.9\t3.0\n7.0\t3.2\n", with("delimiter", "tab")),
      ElementsAre(HasSubstr("?delimiter=tab&header=false'")));
}

TEST_F(SeenCellsTest, TellOfAHeaderThatLooksLikeARow) {
  const std::string iris =
      "5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n";
  EXPECT_THAT(doubts(iris),
              ElementsAre(AllOf(HasSubstr("'5.1', '3.5', 'setosa'"),
                                HasSubstr("t.csv?header=false'"))));
  EXPECT_THAT(doubts(iris, with("header", false)), IsEmpty());
  EXPECT_THAT(doubts("no,yes\nyes,no\nno,yes\n"), ElementsAre(HasSubstr(": ")));
  EXPECT_THAT(doubts("0,1,2\n4.9,3.0,1\n"), IsEmpty()) << "names of pandas";
  EXPECT_THAT(doubts("2019,2020\n4.9,3.0\n"), IsEmpty()) << "years";
  EXPECT_THAT(doubts("country,2019.5\nitaly,3\n"), IsEmpty());
  EXPECT_THAT(doubts("1.5,2.5\nx,y\n"), IsEmpty()) << "numbers above texts";
}

TEST_F(SeenCellsTest, TellAnIndexByItsNumbersWithoutAName) {
  auto index = [&](const std::string& text) {
    return schema(text).columns[0].index;
  };
  EXPECT_EQ(index(",x\n0,5\n1,6\n2,7\n"),
            "the number of the row, without a "
            "name");
  EXPECT_NE(index("\"x\"\n\"1\",5\n\"2\",6\n"), "") << "as R writes it";
  EXPECT_EQ(index("n,x\n0,5\n1,6\n"), "");
  EXPECT_EQ(index(",x\n0,5\n2,6\n"), "") << "other numbers";
  EXPECT_EQ(index(",x\na,5\nb,6\n"), "");
}

}  // namespace
}  // namespace penstock::text
