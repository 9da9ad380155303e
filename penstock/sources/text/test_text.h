#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/files/test_folder.h"

namespace penstock::text {

/// Files of text as a user sees them. For tests.
class TextTest : public testing::Test {
 protected:
  std::vector<std::string> csv(const std::string& text,
                               Json more = Json(Json::Object{}),
                               const std::string& name = "t.csv") {
    folder_.write(name, text);
    Json section = files::section_of("csv", folder_.path(name));
    for (const auto& [key, value] : more.object()) section[key] = value;
    return files::shown_rows(section);
  }
  std::vector<std::string> jsonl(const std::string& text) {
    return files::shown_rows(
        files::section_of("jsonl", folder_.write("t.jsonl", text)));
  }
  std::vector<std::string> types(const std::string& kind,
                                 const std::string& path,
                                 const Json& more = Json(Json::Object{})) {
    std::vector<std::string> all;
    Json section = files::section_of(kind, path);
    for (const auto& [key, value] : more.object()) section[key] = value;
    const Schema schema = read_schema(parse_source_spec(section, "source"));
    for (const ColumnInfo& column : schema.columns)
      all.push_back(column.name + " " + column.declared);
    return all;
  }
  static Json with(const char* key, Json value) {
    Json more(Json::Object{});
    more[key] = std::move(value);
    return more;
  }

  files::TestFolder folder_;
};

}  // namespace penstock::text
