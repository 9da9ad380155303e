#include "penstock/job/short_forms.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

/// Columns "a" and "b" of numbers, "species" of texts.
Schema measured_flowers() {
  return {.columns = {{.name = "a", .declared = "int64"},
                      {.name = "b", .declared = "float64"},
                      {.name = "species", .declared = "text", .text = true}}};
}

std::string written(const std::string& job) {
  return written_out(Json::parse(job, "test"),
                     [](const Json&) { return measured_flowers(); })
      .dump();
}

std::string plain(const std::string& json) {
  return Json::parse(json, "test").dump();
}

TEST(ShortForms, AListOfColumnsIsAFieldOfNumbers) {
  EXPECT_EQ(written(R"({"fields": {"x": ["a", "b"]}})"),
            plain(R"({"fields": {"x": {"columns": ["a", "b"]}}})"));
}

TEST(ShortForms, AColumnByItsNameIsACategoryWhereItHoldsText) {
  EXPECT_EQ(written(R"({"source": {"kind": "csv"},
                  "fields": {"y": "species", "x": "a", "z": "unknown"}})"),
            plain(R"({"source": {"kind": "csv"},
                "fields": {"y": {"category": {"column": "species"}},
                           "x": {"columns": ["a"]},
                           "z": {"columns": ["unknown"]}}})"));
}

TEST(ShortForms, AnArrayHasTheShapeOfItsColumn) {
  const Schema schema{
      .columns = {{.name = "m", .item = {2, 3}}, {.name = "open"}}};
  auto with = [&](const std::string& job) {
    return written_out(Json::parse(job, "test"),
                       [&](const Json&) { return schema; })
        .dump();
  };
  EXPECT_EQ(with(R"({"fields": {"x": {"array": {"column": "m"}}}})"),
            plain(R"({"fields": {"x": {"array": {"column": "m",
                                                 "shape": [2, 3]}}}})"));
  for (const char* own :
       {R"({"column": "m", "shape": [6]})", R"({"column": "open"})",
        R"({"column": "m", "lengths": "padded"})",
        R"({"column": "m", "window": {"length": 4}})", R"({"column": 1})"}) {
    const std::string job =
        R"({"fields": {"x": {"array": )" + std::string(own) + "}}}";
    EXPECT_EQ(with(job), plain(job));
  }
}

TEST(ShortForms, ASourceIsAUri) {
  const Json job = written_out(
      Json::parse(R"({"source": "csv:t.csv?delimiter=;"})", "test"), {});
  EXPECT_EQ(job.find("source")->find("kind")->string(), "csv");
  EXPECT_EQ(job.find("source")->find("path")->string(), "t.csv");
  EXPECT_EQ(job.find("source")->find("delimiter")->string(), ";");
}

TEST(ShortForms, TheSchemaIsReadOnlyWhereItMatters) {
  const std::string job =
      R"({"source": {"kind": "csv"}, "fields": {"x": ["a"], "z": {"tokens": {}}}})";
  int read = 0;
  const SchemaOfSource counted = [&](const Json&) {
    ++read;
    return measured_flowers();
  };
  written_out(Json::parse(job, "test"), counted);
  EXPECT_EQ(read, 0);
  written_out(Json::parse(R"({"fields": {"x": "a", "y": "b"}})", "test"),
              counted);
  EXPECT_EQ(read, 1);
}

TEST(ShortForms, SourcesThatAreMixedHaveThemToo) {
  const Json job = Json::parse(written(R"({
    "fields": {"y": "species"},
    "sources": [{"source": "csv:a.csv"},
                {"source": "csv:b.csv", "fields": {"y": ["a"]}}]})"),
                               "test");
  EXPECT_EQ(job.find("fields")->dump(),
            plain(R"({"y": {"category": {"column": "species"}}})"));
  const Json& second = job.find("sources")->array()[1];
  EXPECT_EQ(second.find("source")->find("path")->string(), "b.csv");
  EXPECT_EQ(second.find("fields")->dump(),
            plain(R"({"y": {"columns": ["a"]}})"));
}

TEST(ShortForms, WhatIsNotInShortFormStaysForTheParserToCheck) {
  for (const char* job : {R"({"fields": {"x": 3}})", R"({"fields": 3})", "[]",
                          R"({"sources": []})", R"({"source": 3})"})
    EXPECT_EQ(written(job), plain(job));
}

}  // namespace
}  // namespace penstock
