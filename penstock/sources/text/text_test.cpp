// What CSV and JSON lines look like to a user, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "penstock/sources/concatenated.h"
#include "penstock/sources/text/test_text.h"

namespace penstock::text {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TextTest, FindsTheTypesOfCells) {
  folder_.write("t.csv",
                "i,f,b,t,s,none,wide,mixed\n"
                "1,1.5,true,2024-01-01,abc,,12345678901234567890,1\n"
                "-2,3,False,2024-01-02 03:04:05,1x,NA,1,2.5\n");
  EXPECT_THAT(
      types("csv", folder_.path("t.csv")),
      ElementsAre("i int64", "f float64", "b bool", "t timestamp", "s text",
                  "none no value", "wide text", "mixed float64"));
}

TEST_F(TextTest, ReadsCellsInQuotationMarks) {
  EXPECT_THAT(csv("a,b\n\"x, \"\"y\"\"\nz\",1\n\"\",\"2\"\n,3\n"),
              ElementsAre("x, \"y\"\nz | 1.0", " | 2.0", "null | 3.0"));
}

TEST_F(TextTest, FindsTheDelimiter) {
  EXPECT_THAT(csv("a;b\n1;2,5\n", with("decimal", ",")),
              ElementsAre("1.0 | 2.5"));
  EXPECT_THAT(csv("a\tb\n1\t2\n"), ElementsAre("1.0 | 2.0"));
  EXPECT_THAT(csv("a|b\n1|2\n", with("delimiter", "|")),
              ElementsAre("1.0 | 2.0"));
}

TEST_F(TextTest, NamesColumnsWhereThereIsNoHeader) {
  folder_.write("t.csv", "1,x\n2,y\n");
  Json section = files::section_of("csv", folder_.path("t.csv"));
  section["header"] = false;
  EXPECT_THAT(files::shown_rows(section, {"c2", "c1"}),
              ElementsAre("x | 1.0", "y | 2.0"));
}

TEST_F(TextTest, TakesFilesOrTheirLinesForDocuments) {
  const std::string path = folder_.write("t.txt", "a\n\nb\r\n\xff");
  Json section = files::section_of("text", path);
  EXPECT_THAT(files::shown_rows(section, {"text"}),
              ElementsAre("a\n\nb\r\n\xff"));
  section["by"] = "line";
  EXPECT_THAT(files::shown_rows(section),
              ElementsAre("a | " + path, "b | " + path, "\xff | " + path));
  section["columns"]["text"] = "text";
  EXPECT_THAT(files::shown_rows(section, {"text"}).back(),
              AllOf(HasSubstr("null"), HasSubstr("t.txt:4")));
  EXPECT_THAT(types("text", path), ElementsAre("text text", "path text"));
}

TEST_F(TextTest, NamesTheLineOfJsonThatIsNotUtf8) {
  EXPECT_THAT(jsonl("{\"a\": 1}\n{\"a\": \"\xff\"}\n").back(),
              AllOf(HasSubstr("is not UTF-8"), HasSubstr("t.jsonl:2"),
                    HasSubstr("iconv")));
}

TEST_F(TextTest, KnowsTheLineOfARow) {
  struct Case {
    const char *kind, *name, *text;
  };
  for (const Case& one :
       {Case{"jsonl", "p.jsonl", "\n{\"a\": 1}\n\n\n{\"a\": 2}\n{}\n"},
        Case{"csv", "p.csv", "\na\n\"1\n\"\n2\n3\n"}}) {
    const std::string path = folder_.write(one.name, one.text);
    const auto source = open_source(
        parse_source_spec(files::section_of(one.kind, path), "source"),
        {{.column = "a", .as = ReadAs::value}});
    EXPECT_THAT(source->place_of(1), AllOf(HasSubstr(path), EndsWith(":5")));
    EXPECT_THAT(source->place_of(2), EndsWith(":6"));
    EXPECT_EQ(source->place_of(3), "");

    std::vector<std::unique_ptr<Source>> twice;
    for (int i = 0; i < 2; ++i)
      twice.push_back(open_source(
          parse_source_spec(files::section_of(one.kind, path), "source"),
          {{.column = "a", .as = ReadAs::value}}));
    EXPECT_THAT(concatenated(std::move(twice))->place_of(4), EndsWith(":5"));
  }
}

TEST_F(TextTest, TakesWordsForMissing) {
  Json words(Json::Array{});
  words.push_back("-");
  EXPECT_THAT(csv("a,b\n1,x\n-,-\n2,NA\n", with("na", words)),
              ElementsAre("1.0 | x", "null | null", "2.0 | NA"));
  EXPECT_THAT(csv("a,b\n1,x\nnan,\"NA\"\n"),
              ElementsAre("1.0 | x", "null | NA"));
}

TEST_F(TextTest, ReadsOtherEncodings) {
  EXPECT_THAT(csv("n\xe4me,x\n\xe4,1\n", with("encoding", "latin1")),
              ElementsAre("\xc3\xa4 | 1.0"));
  EXPECT_THAT(csv("\xef\xbb\xbf"
                  "a\n1\n"),
              ElementsAre("1.0"));
}

TEST_F(TextTest, NamesBytesThatAreNotUtf8) {
  EXPECT_THAT(csv("a,b\n\xff,1\n"),
              ElementsAre(AllOf(HasSubstr("null | 1.0!"), HasSubstr("t.csv:2"),
                                HasSubstr("source.encoding"))));
  EXPECT_THAT(csv("\xff,b\n1,1\n"), ElementsAre(HasSubstr("source.encoding")));
  EXPECT_THAT(csv("a\n1\n", with("encoding", "klingon")),
              ElementsAre(HasSubstr("iconv")));
}

std::string gzipped(const std::string& text) {
  std::string packed(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

TEST_F(TextTest, ReadsWhatIsCompressed) {
  std::string packed = gzipped("a,b\n1,x\n") + gzipped("2,y\n");
  EXPECT_THAT(csv(packed, {Json::Object{}}, "t.csv.gz"),
              ElementsAre("1.0 | x", "2.0 | y"));
  EXPECT_THAT(
      csv(packed + std::string(100'000, '\0'), {Json::Object{}}, "t.csv.gz"),
      ElementsAre("1.0 | x", "2.0 | y"));
  EXPECT_THAT(
      csv(packed + std::string(9, '\0') + "x", {Json::Object{}}, "t.csv.gz"),
      ElementsAre(HasSubstr("cannot decompress")));
  std::string cut = packed.substr(0, packed.size() - 5);
  EXPECT_THAT(csv(cut, {Json::Object{}}, "t.csv.gz"),
              ElementsAre(AllOf(HasSubstr("t.csv.gz, byte"),
                                HasSubstr("ends within"))));
  packed[packed.size() / 3] ^= 0x55;
  EXPECT_THAT(csv(packed, {Json::Object{}}, "t.csv.gz"),
              ElementsAre(HasSubstr("cannot decompress")));
}

TEST_F(TextTest, NamesARowWithAnotherNumberOfCells) {
  EXPECT_THAT(csv("a,b\n1,2\n\n3,4,5\n6\n"),
              ElementsAre("1.0 | 2.0",
                          AllOf(HasSubstr("3 cells, expected 2"),
                                HasSubstr("t.csv:4"), HasSubstr("'3,4,5'")),
                          AllOf(HasSubstr("1 cell, expected 2"),
                                HasSubstr("t.csv:5"))));
}

TEST_F(TextTest, NamesANumberThatDoesNotFit) {
  Json columns(Json::Object{});
  columns["a"] = "int8";
  EXPECT_THAT(csv("a\n1\n300\n", with("columns", columns)),
              ElementsAre("1.0", AllOf(HasSubstr("'300'"), HasSubstr("int8"),
                                       HasSubstr("t.csv:3"),
                                       HasSubstr("source.columns.a"))));
}

TEST_F(TextTest, RefusesAHeaderThatNamesAColumnTwice) {
  EXPECT_THAT(csv("a,a\n1,2\n"),
              ElementsAre(HasSubstr("two columns are named 'a'")));
  EXPECT_THAT(csv(""), ElementsAre(HasSubstr("the file is empty")));
}

TEST_F(TextTest, WidensTypesOverAllFiles) {
  folder_.write("d/1.csv", "x,y\n1,2\n");
  folder_.write("d/2.CSV", "x,y\n1.5,z\n");
  EXPECT_THAT(types("csv", folder_.path("d")),
              ElementsAre("x float64", "y text"));
}

TEST_F(TextTest, RefusesFilesWithOtherColumns) {
  folder_.write("d/1.csv", "x,y\n1,2\n");
  folder_.write("d/2.csv", "x,z\n1,2\n");
  EXPECT_THAT(files::shown_rows(files::section_of("csv", folder_.path("d"))),
              ElementsAre(AllOf(HasSubstr("2.csv"), HasSubstr("'z'"),
                                HasSubstr("1.csv"))));
}

TEST_F(TextTest, OrdersFilesByTheirPathsAndTakesFoldersForColumns) {
  folder_.write("d/day=2/b.csv", "x\n3\n");
  folder_.write("d/day=2/a.csv", "x\n2\n");
  folder_.write("d/day=10/z.csv", "x\n1\n");
  folder_.write("d/day=10/_hidden.csv", "x\n9\n");
  folder_.write("d/day=10/other.txt", "no");
  EXPECT_THAT(files::shown_rows(files::section_of("csv", folder_.path("d"))),
              ElementsAre("1.0 | 10.0", "2.0 | 2.0", "3.0 | 2.0"));
  EXPECT_THAT(
      files::shown_rows(files::section_of("csv", folder_.path("d/*/[ab].csv"))),
      ElementsAre("2.0 | 2.0", "3.0 | 2.0"));
  EXPECT_THAT(
      files::shown_rows(files::section_of("csv", folder_.path("d/**/z.csv"))),
      ElementsAre("1.0 | 10.0"));
}

TEST_F(TextTest, FindsFilesOfAPatternInFoldersOfAnyDepth) {
  for (const char* name : {"a.csv", "p/b.csv", "p/q/c.csv", "q/p/q/d.csv"})
    folder_.write(std::string("d/") + name, "x\n" + std::string(name) + "\n");
  auto found = [&](const std::string& pattern) {
    return files::shown_rows(
        files::section_of("csv", folder_.path("d/" + pattern)));
  };
  EXPECT_THAT(found("*/**/*.csv"),
              ElementsAre("p/b.csv", "p/q/c.csv", "q/p/q/d.csv"));
  EXPECT_THAT(found("*/**/c.csv"), ElementsAre("p/q/c.csv"));
  EXPECT_THAT(found("**/q/*.csv"), ElementsAre("p/q/c.csv", "q/p/q/d.csv"));
  EXPECT_THAT(found("[q]/**/**/d.csv"), ElementsAre("q/p/q/d.csv"));
  EXPECT_THAT(found("**/p/**/*.csv"),
              ElementsAre("p/b.csv", "p/q/c.csv", "q/p/q/d.csv"));
  EXPECT_THAT(found("p/**"), ElementsAre("p/b.csv", "p/q/c.csv"));
  EXPECT_THAT(found("**/*.csv"), testing::SizeIs(4));
  EXPECT_THAT(found("*/*/*.csv"), ElementsAre("p/q/c.csv"));
}

TEST_F(TextTest, RefusesJsonOfWhichNoLineIsAnObject) {
  EXPECT_THAT(jsonl("[{\"a\":1},{\"a\":2}]\n"),
              ElementsAre(AllOf(HasSubstr("error: "), HasSubstr("t.jsonl:1"),
                                HasSubstr("is not a JSON object"),
                                HasSubstr("text '[{\"a\":1}"),
                                HasSubstr("each line must be one object"))));
  EXPECT_THAT(jsonl("\n1\n2\n"), ElementsAre(HasSubstr("t.jsonl:2")));
  EXPECT_THAT(jsonl("{\n  \"a\": 1\n}\n"),
              ElementsAre(HasSubstr("each line must be one object")));
  EXPECT_THAT(jsonl("{\"a\": 1}\n[2]\n"),
              ElementsAre("1.0", HasSubstr("is not a JSON object")));
}

TEST_F(TextTest, SaysThatJsonHasNoNaN) {
  for (const char* word : {"NaN", "Infinity", "-Infinity"})
    EXPECT_THAT(jsonl("{\"a\": 1.5}\n{\"a\": " + std::string(word) + "}\n"),
                ElementsAre("1.5", AllOf(HasSubstr("t.jsonl:2:"),
                                         HasSubstr("is not JSON"),
                                         HasSubstr("write null"))));
}

TEST_F(TextTest, NamesWhatIsNotThere) {
  folder_.write("d/x.txt", "no");
  EXPECT_THAT(files::shown_rows(files::section_of("csv", folder_.path("q"))),
              ElementsAre(HasSubstr("No such file")));
  EXPECT_THAT(files::shown_rows(files::section_of("csv", folder_.path("d"))),
              ElementsAre(HasSubstr("ends with .csv")));
  EXPECT_THAT(
      files::shown_rows(files::section_of("csv", folder_.path("d/*.csv"))),
      ElementsAre(HasSubstr("no file matches")));
}

TEST_F(TextTest, ReadsJsonLines) {
  EXPECT_THAT(
      jsonl(
          "{\"a\": 1, \"o\": {\"x\": 1.5, \"y\": \"s\"}, \"l\": [{\"k\": 1}]}\n"
          "\n"
          "{\"o\": {\"y\": \"\\u00e4\"}, \"b\": true}\n"
          "{\"a\": null, \"o\": null, \"l\": []}"),
      ElementsAre("1.0 | 1.5 | s | [{\"k\": 1}] | null",
                  "null | null | \xc3\xa4 | null | 1.0",
                  "null | null | null | [] | null"));
}

TEST_F(TextTest, FindsMembersInAnyOrderAndHoweverTheyAreWritten) {
  EXPECT_THAT(jsonl("{\"a\": 1, \"b\": 2.5, \"q\\\"\": 3}\n"
                    "{\"q\\\"\": 4, \"\\u0061\": 5, \"b\": -0.5}\n"
                    "{\"b\": 1e2, \"ab\": 7, \"a\": 12345678901234567}\n"
                    "{}\n"),
              ElementsAre("1.0 | 2.5 | 3.0 | null", "5.0 | -0.5 | 4.0 | null",
                          "12345678901234568.0 | 100.0 | null | 7.0",
                          "null | null | null | null"));
}

TEST_F(TextTest, TakesObjectsOfManyDifferentNamesAsTheyCome) {
  std::string text = "{";
  for (int i = 0; i < 20000; ++i)
    text += "\"k" + std::to_string(i) + "\": " + std::to_string(i) + ", ";
  const std::string path =
      folder_.write("t.jsonl", text + "\"end\": 1}\n" + text + "\"x\": 1}\n");
  const std::vector<std::string> found = types("jsonl", path);
  ASSERT_THAT(found, testing::SizeIs(20002));
  EXPECT_EQ(found[0], "k0 int64");
  EXPECT_EQ(found[20001], "x int64");
  EXPECT_THAT(
      files::shown_rows(files::section_of("jsonl", path),
                        {"k19999", "end", "x", "k0"}),
      ElementsAre("19999.0 | 1.0 | null | 0.0", "19999.0 | null | 1.0 | 0.0"));
}

TEST_F(TextTest, NamesALineThatIsNoJson) {
  EXPECT_THAT(
      jsonl("{\"a\": 1}\n{\"a\": 1\n[1]\n{\"a\": 2} x\n{\"a\": 3}\n"),
      ElementsAre("1.0", HasSubstr("t.jsonl:2:8"),
                  AllOf(HasSubstr("JSON object"), HasSubstr("t.jsonl:3:1")),
                  HasSubstr("t.jsonl:4:10"), "3.0"));
}

TEST_F(TextTest, NamesAValueOfAnotherKind) {
  folder_.write("t.jsonl",
                "{\"a\": 1}\n{\"a\": \"x\"}\n{\"a\": 1, \"a\": 2}\n");
  Json section = files::section_of("jsonl", folder_.path("t.jsonl"));
  section["columns"]["a"] = "int32";
  EXPECT_THAT(files::shown_rows(section),
              ElementsAre("1.0",
                          AllOf(HasSubstr("\"x\""), HasSubstr("int32"),
                                HasSubstr("t.jsonl:2:7")),
                          AllOf(HasSubstr("appears twice"),
                                HasSubstr("t.jsonl:3:15"))));
}

TEST_F(TextTest, SelectsRowsAndKeepsBadOnesForOnBadToDecide) {
  EXPECT_THAT(csv("a,b\n1,x\n2,y\n3,z\n", with("where", "a >= 2 and b <> 'z'")),
              ElementsAre("2.0 | y"));
  Json more = with("where", "a > 5");
  more["columns"]["a"] = "int64";
  EXPECT_THAT(csv("a,b\n1,x\nbad,y\n", more), ElementsAre(HasSubstr("'bad'")));
}

TEST_F(TextTest, RefusesSettingsOfTables) {
  Json section = files::section_of("csv", "t.csv");
  section["table"] = "t";
  EXPECT_THAT(
      files::shown_rows(section),
      ElementsAre(AllOf(HasSubstr("source.table"), HasSubstr("by position"))));
  section = files::section_of("csv", "t.csv");
  section["delimiter"] = ",,";
  EXPECT_THAT(files::shown_rows(section),
              ElementsAre(HasSubstr("source.delimiter")));
}

TEST_F(TextTest, IsFoundByTheEndOfAName) {
  std::string path = folder_.write("a#b.CSV", "x\n1\n");
  EXPECT_THAT(files::shown_rows(Json(path)), ElementsAre("1.0"));
  EXPECT_THAT(files::shown_rows(Json("csv:" + path)), ElementsAre("1.0"));
  EXPECT_EQ(parse_source_spec(Json("x.ndjson.zst"), "source").kind, "jsonl");
}

}  // namespace
}  // namespace penstock::text
