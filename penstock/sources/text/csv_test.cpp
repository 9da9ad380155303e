// Cells, numbers and rows of CSV, however they fall into blocks and parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/sources/text/test_text.h"

namespace penstock::text {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvTest : public TextTest {};

TEST_F(CsvTest, TakesNumbersForMissing) {
  Json words(Json::Array{});
  for (const char* word : {"-999", "0", ""}) words.push_back(word);
  Json more = with("na", words);
  EXPECT_THAT(
      csv("a,b,c\n-999,1.5,0\n3,-999,x\n0,9,\"0\"\n", more),
      ElementsAre("null | 1.5 | null", "3.0 | null | x", "null | 9.0 | 0"));
  folder_.write("t.csv", "a\n-999\n");
  more["columns"]["a"] = "bool";
  EXPECT_THAT(csv("a\n1\n0\n-999\n", more), ElementsAre("1.0", "null", "null"));
}

TEST_F(CsvTest, TakesNullForAColumnThatAFileLacksWhereThatIsAsked) {
  folder_.write("days/a.csv", "x,y\n1,2\n");
  folder_.write("days/b.csv", "z,x\nabc,3\n");
  Json days = files::section_of("csv", folder_.path("days"));
  EXPECT_THAT(files::shown_rows(days),
              ElementsAre(AllOf(HasSubstr("column 'z'"),
                                HasSubstr("set \"schema\": \"union\""))));
  days["schema"] = "union";
  EXPECT_THAT(files::shown_rows(days),
              ElementsAre("1.0 | 2.0 | null", "3.0 | null | abc"));
}

TEST_F(CsvTest, ReadsCellsThatAreLongerThanABlockOfMarks) {
  std::string text = "a,b,c\n",
              row = std::string(150, 'x') + ",\n" + std::string(70, 'y');
  for (int i = 0; i < 3; ++i)
    text +=
        std::to_string(i) + ",\"" + row + "\"," + std::to_string(-i) + "\r\n";
  EXPECT_THAT(csv(text),
              ElementsAre("0.0 | " + row + " | 0.0", "1.0 | " + row + " | -1.0",
                          "2.0 | " + row + " | -2.0"));
}

TEST_F(CsvTest, ReadsNumbersInQuotationMarks) {
  std::string text = "\"a\",\"b\",\"c\"\n";
  std::vector<std::string> expected;
  for (int i = -20; i < 20; ++i) {
    const std::string n = std::to_string(i);
    text += "\"" + n + "\",\"" + n + ".5\"," + n + "\n";
    expected.push_back(n + ".0 | " + n + ".5 | " + n + ".0");
  }
  folder_.write("t.csv", text);
  EXPECT_THAT(types("csv", folder_.path("t.csv")),
              ElementsAre("a int64", "b float64", "c int64"));
  EXPECT_THAT(csv(text), testing::ElementsAreArray(expected));
  Json more(Json::Object{});
  more["columns"]["a"] = "int64";
  EXPECT_THAT(
      csv("a\n\"1\"\n\"\"\n\"\"\"2\"\n\"3\"4\n\n", more),
      ElementsAre("1.0", "null", AllOf(HasSubstr("null! "), HasSubstr("'\"2'")),
                  "34.0"))
      << "what follows the closing mark belongs to the cell";
}

TEST_F(CsvTest, TakesDigitsForQuotationMarksWhereTheyAreSaidToBe) {
  EXPECT_THAT(csv("a,b\n121,5\n31,131\n", with("quote", "1")),
              ElementsAre("2.0 | 5.0", "31.0 | 3.0"));
}

TEST_F(CsvTest, ReadsNumbersAsTheyAreWritten) {
  EXPECT_THAT(csv("a,b\n0.1,1\n-2.50, 12 \n1e3,+7\n123456789012345678,-0\n"
                  "12345.678901234567,9007199254740993\n"),
              ElementsAre("0.1 | 1.0", "-2.5 | 12.0", "1000.0 | 7.0",
                          "123456789012345680.0 | 0.0",
                          "12345.678901234567 | 9007199254740992.0"));
  Json more = with("decimal", ",");
  more["delimiter"] = ";";
  EXPECT_THAT(csv("a\n0,5\n-1234,75\n", more), ElementsAre("0.5", "-1234.75"));
  more["columns"]["a"] = "float64";
  EXPECT_THAT(csv("a\n0.5\n", more), ElementsAre(HasSubstr("'0.5'")));
}

TEST_F(CsvTest, TellsProblemsByRowThenByColumn) {
  Json more(Json::Object{});
  more["columns"]["a"] = "int32";
  more["columns"]["b"] = "float32";
  more["columns"]["c"] = "bool";
  const std::vector<std::string> rows =
      csv("a,b,c\n1,2,true\nx,\"y\n\",z\n1,2\n4,5,7\n", more);
  ASSERT_THAT(rows, testing::SizeIs(4));
  EXPECT_EQ(rows[0], "1.0 | 2.0 | 1.0");
  auto in_turn = [](const std::string& row, std::vector<std::string> parts) {
    std::size_t at = 0;
    for (const std::string& part : parts) {
      at = row.find(part, at);
      if (at == row.npos) return "lacks " + part + ": " + row;
      at += part.size();
    }
    return std::string();
  };
  EXPECT_EQ(in_turn(rows[1], {"null | null | null! ", "'x'", "int32", ":3",
                              "! ", "'y\n'", "float32", ":3", "! ", "'z'",
                              "true or false", ":3", "source.columns.c"}),
            "");
  EXPECT_EQ(in_turn(rows[2], {"null | null | null! ", "2 cells, expected 3",
                              ":5", "'1,2'", "! ", ":5", "! ", ":5"}),
            "");
  EXPECT_EQ(in_turn(rows[3], {"4.0 | 5.0 | null! ", "'7'", ":6"}), "");
}

TEST_F(CsvTest, ReadsAHeaderOfAnyLength) {
  // Longer than what is read of a file at first, and behind as many empty
  // lines.
  for (std::size_t size : {std::size_t{65530}, std::size_t{65536},
                           std::size_t{65540}, std::size_t{3} << 20}) {
    const std::string name(size, 'n');
    folder_.write("t.csv", "a,\"" + name + "\"\r\n1,2\r\n");
    EXPECT_THAT(types("csv", folder_.path("t.csv")),
                ElementsAre("a int64", name + " int64"));
    folder_.write("t.csv", std::string(size, '\n') + "a,b\n1,x\n");
    EXPECT_THAT(types("csv", folder_.path("t.csv")),
                ElementsAre("a int64", "b text"));
    EXPECT_THAT(
        csv(std::string(size, '\n') + "a\n1\nx\n",
            with("columns", Json(Json::Object{{"a", Json("int8")}}))),
        ElementsAre("1.0",
                    HasSubstr("t.csv:" + std::to_string(size + 3) + ")")));
  }
}

TEST_F(CsvTest, TellsAQuotationMarkThatIsNeverClosed) {
  const auto never =
      AllOf(HasSubstr("null! a quotation mark is never closed ("),
            HasSubstr("t.csv:3: text '1,\"open\n2"),
            HasSubstr("\"quote\": \"none\""));
  EXPECT_THAT(csv("x,y\n0,a\n1,\"open\n2,3\n4,5\n"),
              ElementsAre("0.0 | a", never));
  EXPECT_THAT(csv("x,y\n0,a\n1,\"open\n2,3\n4,5\n", with("quote", "none")),
              testing::SizeIs(4));
  std::string rest;  // several blocks of marks, and chunks
  for (int row = 0; row < 300'000; ++row) rest += "12345,6\n";
  EXPECT_THAT(csv("x,y\n0,a\n1,\"open\n2,3\n" + rest),
              ElementsAre("0.0 | a", never));
  EXPECT_THAT(csv("x,y\n0,a\n1,\"closed\""),
              ElementsAre("0.0 | a", "1.0 | closed"));
  EXPECT_THAT(csv("x,y\n1,\"open\n2,3\n4,5\n"),
              ElementsAre(HasSubstr("null | null! a quotation mark")));
  folder_.write("t.csv", "x,y\n1,\"open\n2,3\n4,5\n");
  EXPECT_THAT(types("csv", folder_.path("t.csv")),
              ElementsAre("x text", "y text"))
      << "columns of which nothing is known are read, so that it is told";
  EXPECT_THAT(csv("x,y\n0,a\n1,\"open"),
              ElementsAre("0.0 | a", HasSubstr("is never closed")));
  EXPECT_THAT(
      csv("x,\"y\n1,2\n3,4\n"),
      ElementsAre(AllOf(
          HasSubstr("first row"), HasSubstr("t.csv:1"),
          HasSubstr("a quotation mark is never closed: text 'x,\"y\n1"))));
}

// Large enough to be looked at by several threads: the parts are of 4 MiB.
TEST_F(CsvTest, WalksOverLargeFilesAsOverSmallOnes) {
  const std::string filler(997, 'f');
  for (const char* odd : {"", "\n", "\r\n", "\"a\nb\",2\n", "a\"b,2\n"})
    for (int odd_row : {1, 4100, 9999}) {
      std::string text = "t,n\n";
      std::vector<std::string> expected;
      for (int row = 0; row < 10000; ++row) {
        if (row == odd_row) {
          text += odd;
          if (odd[0] == 'a') expected.push_back("a\"b | 2.0");
          if (odd[0] == '"') expected.push_back("a\nb | 2.0");
        }
        text += filler + "," + std::to_string(row) + "\n";
        expected.push_back(filler + " | " + std::to_string(row) + ".0");
      }
      text += "last,x";
      const auto line = std::ranges::count(text, '\n') + 1;
      Json more(Json::Object{});
      more["columns"]["n"] = "int32";
      const std::vector<std::string> rows = csv(text, more);
      ASSERT_EQ(rows.size(), expected.size() + 1);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), rows.begin()));
      EXPECT_THAT(rows.back(),
                  AllOf(HasSubstr("last | null! "),
                        HasSubstr("t.csv:" + std::to_string(line) + ")")));
    }
}

TEST_F(CsvTest, LooksAtTypesInAllOfALargeFile) {
  std::string text = "n,o\n";
  for (int row = 0; row < 1'200'000; ++row)
    text += std::to_string(row) + (row == 700'000   ? ",1.5\n"
                                   : row == 900'000 ? ",true\n"
                                                    : ",2\n");
  folder_.write("t.csv", text);
  EXPECT_THAT(types("csv", folder_.path("t.csv")),
              ElementsAre("n int64", "o text"));
}

TEST_F(CsvTest, SaysThatTypesAreGuessedFromParts) {
  auto left_out = [&](const Json& columns) {
    Json section = files::section_of("csv", folder_.path("t.csv"));
    section["columns"] = columns;
    return read_schema(parse_source_spec(section, "source")).left_out;
  };
  folder_.write("t.csv", "n\n1\n");
  EXPECT_TRUE(left_out(Json(Json::Object{})).empty());
  std::string text = "n\n";
  for (int row = 0; row < 4'000'000; ++row) text += "12345678\n";
  folder_.write("t.csv", text);
  const auto said = left_out(Json(Json::Object{}));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0].next, testing::HasSubstr("source.columns"));
  EXPECT_TRUE(left_out(Json(Json::Object{{"n", Json("int32")}})).empty());
}

}  // namespace
}  // namespace penstock::text
