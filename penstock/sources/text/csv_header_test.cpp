// How a CSV file begins, and how its lines end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sources/text/test_text.h"

namespace penstock::text {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvHeaderTest : public TextTest {
 protected:
  std::vector<std::string> columns(const std::string& text,
                                   const std::string& name = "t.csv",
                                   const Json& more = Json(Json::Object{})) {
    return types("csv", folder_.write(name, text), more);
  }
};

TEST_F(CsvHeaderTest, FindsTheDelimiterOutsideOfQuotationMarks) {
  EXPECT_THAT(columns("\"a,b,c,d\";\"e\"\n1;2\n3;4\n"),
              ElementsAre("a,b,c,d int64", "e int64"));
  EXPECT_THAT(columns("\"a;b\nc;d\",e\n1,2\n"),
              ElementsAre("a;b\nc;d int64", "e int64"));
  EXPECT_THAT(columns("\"say \"\"a;b;c\"\"\"\te\n1\t2\n"),
              ElementsAre("say \"a;b;c\" int64", "e int64"));
}

TEST_F(CsvHeaderTest, FindsTheDelimiterByWhichRowsAreLikeTheHeader) {
  EXPECT_THAT(columns("name, first, last, x\tage\tz\nq\t1\t2\n", "t.tsv"),
              ElementsAre("name, first, last, x text", "age int64", "z int64"));
  EXPECT_THAT(columns("a|b,c,d\n1|2,3,4\n"),
              ElementsAre("a|b text", "c int64", "d int64"));
  EXPECT_THAT(csv("a;b;c\n1,5;2,5;3,5\n4;5;6\n", with("decimal", ",")),
              ElementsAre("1.5 | 2.5 | 3.5", "4.0 | 5.0 | 6.0"));
  EXPECT_THAT(columns("a;b,c;d\n"),
              ElementsAre("a no value", "b,c no value", "d no value"))
      << "a header alone: the one that it has most of";
  EXPECT_THAT(columns("text\nhello world\n"), ElementsAre("text text"));
  std::string rows = "a|b,c,d\n1|2,3\n";  // one of many that is damaged
  for (int row = 0; row < 50; ++row) rows += "1|2,3,4\n";
  EXPECT_THAT(columns(rows), testing::SizeIs(3));
}

TEST_F(CsvHeaderTest, AsksWhatNumbersWithADecimalCommaAre) {
  const std::string german = "a;b\n1,5;2\n-2,25;3,5\n";
  try {
    columns(german);
    FAIL() << "they would be texts";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "source.decimal");
    EXPECT_THAT(std::string(error.what()), HasSubstr("?decimal=,"));
  }
  EXPECT_THAT(columns(german, "t.csv", with("decimal", ",")),
              ElementsAre("a float64", "b float64"));
  EXPECT_THAT(columns(german, "t.csv",
                      with("columns", Json(Json::Object{{"a", Json("text")},
                                                        {"b", Json("text")}}))),
              ElementsAre("a text", "b text"));
  EXPECT_THAT(columns("a;b\n1,5;x\ny;2,5\n"), ElementsAre("a text", "b text"))
      << "other texts are among them";
  EXPECT_THAT(columns("a;b\n1,234;x\n12,345;y\n"),
              ElementsAre("a text", "b text"))
      << "thousands may be grouped";
}

TEST_F(CsvHeaderTest, TakesTheDelimiterThatExcelsFirstLineNames) {
  EXPECT_THAT(csv("sep=;\na;b\n1;2\n3;4\n"),
              ElementsAre("1.0 | 2.0", "3.0 | 4.0"));
  EXPECT_THAT(csv("\xef\xbb\xbf\"SEP=|\"\r\na,b|c\r\n1|2\r\n"),
              ElementsAre("1.0 | 2.0"));
  EXPECT_THAT(csv("sep=\t\na\tb\n1\tx\n"), ElementsAre("1.0 | x"));
  EXPECT_THAT(csv("sep=;\na,b\n1,2\n", with("delimiter", ",")),
              ElementsAre("1.0 | 2.0"));
  EXPECT_THAT(csv("sep=;\n1;2\n", with("header", false)),
              ElementsAre("1.0 | 2.0"));
  EXPECT_THAT(csv("sep=;\na\n1\nx\n",
                  with("columns", Json(Json::Object{{"a", Json("int8")}}))),
              ElementsAre("1.0", HasSubstr("t.csv:4")));
  EXPECT_THAT(columns("sep=ab,b\n1,2\n"),
              ElementsAre("sep=ab int64", "b int64"));
  EXPECT_THAT(csv("sep=;\n"), ElementsAre(HasSubstr("the file is empty")));
}

TEST_F(CsvHeaderTest, ReadsAHeaderThatDoesNotNameTheNamesOfRows) {
  const std::string text =
      "\"Weight\",\"Feed\",\"Pig\"\n\"1\",26.5,NA,4601\n\"2\",27.5,5.2,4601\n";
  EXPECT_THAT(columns(text), ElementsAre("c1 int64", "Weight float64",
                                         "Feed float64", "Pig int64"));
  EXPECT_THAT(csv(text), ElementsAre("1.0 | 26.5 | null | 4601.0",
                                     "2.0 | 27.5 | 5.2 | 4601.0"));
  EXPECT_THAT(csv("\"mpg\"\t\"cyl\"\n\"Mazda RX4\"\t21\t6\n"
                  "\"Datsun 710\"\t22.8\t4\n"),
              ElementsAre("Mazda RX4 | 21.0 | 6.0", "Datsun 710 | 22.8 | 4.0"));
  EXPECT_THAT(csv("\"x\"\n\"a\",1\n"), ElementsAre("a | 1.0"));
}

TEST_F(CsvHeaderTest, RefusesRowsThatHaveAnotherCellMoreThanTheHeader) {
  EXPECT_THAT(csv("a,b\n1,2,\n3,4,\n"),
              Each(AllOf(HasSubstr("3 cells, expected 2"),
                         HasSubstr("ends with a delimiter"))));
  EXPECT_THAT(csv("a,b\n1,2,3\n4,5\n"),
              ElementsAre(HasSubstr("3 cells, expected 2"), "4.0 | 5.0"));
  EXPECT_THAT(csv("\"a\",\"b\"\n\"1\",2,3\n\"1\",5,6\n"),
              Each(HasSubstr("3 cells, expected 2")))
      << "no names of rows, of which each is another";
  EXPECT_THAT(csv("id,text\n1,hello, world\n2,good, bye\n"),
              Each(AllOf(HasSubstr("3 cells, expected 2"),
                         HasSubstr("row.names=FALSE"))))
      << "which may be a text without quotation marks";
}

TEST_F(CsvHeaderTest, ReadsLinesThatEndWithACarriageReturn) {
  EXPECT_THAT(csv("name,age\ralice,30\rbob,40"),
              ElementsAre("alice | 30.0", "bob | 40.0"));
  EXPECT_THAT(csv("name,age\ralice,30\r\rbob,40\r"),
              ElementsAre("alice | 30.0", "bob | 40.0"));
  EXPECT_THAT(csv("\xef\xbb\xbf\"na\rme\",age\r\"a\rb\",30\r\"c\"\"\r\",40\n"),
              ElementsAre("a\rb | 30.0", "c\"\r | 40.0"))
      << "those in quotation marks stay";
  EXPECT_THAT(csv("a,b\r1,2\r\n3,4\n5,6\r"),
              ElementsAre("1.0 | 2.0", "3.0 | 4.0", "5.0 | 6.0"));
  EXPECT_THAT(csv("a,b\r\r\n1,2\r\r\n3,4\r\r\n"),
              ElementsAre("1.0 | 2.0", "3.0 | 4.0"));
  std::string text = "n,t\r";  // longer than a piece that is written
  for (int row = 0; row < 30'000; ++row)
    text += std::to_string(row) + ",\"x\ry\"\r";
  const std::vector<std::string> rows = csv(text);
  ASSERT_THAT(rows, testing::SizeIs(30'000));
  EXPECT_EQ(rows[29'999], "29999.0 | x\ry");
}

TEST_F(CsvHeaderTest, TellsTheLineWhereLinesEndWithACarriageReturn) {
  EXPECT_THAT(csv("a\r1\rx\r",
                  with("columns", Json(Json::Object{{"a", Json("int8")}}))),
              ElementsAre("1.0", HasSubstr("t.csv:3")));
}

TEST_F(CsvHeaderTest, KeepsOtherEndsOfLines) {
  EXPECT_THAT(csv("a,b\r\n1,\"x\r\ny\rz\"\r\n"),
              ElementsAre("1.0 | x\r\ny\rz"));
  EXPECT_THAT(csv("a,b\r\n1,x\r"), ElementsAre("1.0 | x"));
  EXPECT_THAT(csv("a,b\r"), testing::IsEmpty());
}

TEST_F(CsvHeaderTest, NamesACarriageReturnAmongOtherEndsOfLines) {
  const auto hint =
      HasSubstr("a carriage return does not end a row in this file");
  EXPECT_THAT(csv("a,b\n1,2\r3,4\n5,6\n"),
              ElementsAre(AllOf(HasSubstr("3 cells, expected 2"),
                                HasSubstr("t.csv:2"), hint),
                          "5.0 | 6"));
  EXPECT_THAT(csv("a\nx\ry\nz\n"), ElementsAre(hint, "z"));
}

TEST_F(CsvHeaderTest, ReadsJsonLinesThatEndWithACarriageReturn) {
  EXPECT_THAT(jsonl("{\"a\": 1}\r{\"a\": 2}\r\n{\"a\": 3}\r"),
              ElementsAre("1.0", "2.0", "3.0"));
  EXPECT_THAT(jsonl("{\"a\": 1}\n{\"a\": 2}\r{\"a\": 3}\n"),
              ElementsAre("1.0", AllOf(HasSubstr("t.jsonl:2"),
                                       HasSubstr("a carriage return does not "
                                                 "end a line in this file"))));
}

TEST_F(CsvHeaderTest, ReadsTextByLinesThatEndWithACarriageReturn) {
  const std::string path = folder_.write("t.txt", "a\rb\rc");
  Json section = files::section_of("text", path);
  EXPECT_THAT(files::shown_rows(section, {"text"}), ElementsAre("a\rb\rc"));
  section["by"] = "line";
  EXPECT_THAT(files::shown_rows(section, {"text"}), ElementsAre("a", "b", "c"));
}

TEST_F(CsvHeaderTest, ReadsNumbersThatAreTooSmallAsZero) {
  EXPECT_THAT(csv("p,beta\n0.5,1\n1e-400,2\n3.2e-330,3\n-1e-400,4\n"),
              ElementsAre("0.5 | 1.0", "0.0 | 2.0", "0.0 | 3.0", "-0.0 | 4.0"));
  EXPECT_THAT(columns("p\n4.9e-324\n"), ElementsAre("p float64"));
  EXPECT_THAT(columns("p\n1e400\n"), ElementsAre("p text"));
  EXPECT_THAT(csv("p\n1e-50\n1e50\n",
                  with("columns", Json(Json::Object{{"p", Json("float32")}}))),
              ElementsAre("0.0", HasSubstr("'1e50'")));
  EXPECT_THAT(csv("p\n0.5\n1e-400\n", with("where", "p > 1e-400")),
              ElementsAre("0.5"));
}

}  // namespace
}  // namespace penstock::text
