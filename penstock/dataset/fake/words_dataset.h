#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/dataset/table/table_dataset.h"
#include "penstock/sources/fake/fake_source.h"
#include "penstock/transforms/fake/letters.h"
#include "penstock/transforms/fake/strip.h"

namespace penstock {

/// A table of texts that differ in length, for tests: row i holds
/// `text_of_row(i)`, of 0 to 22 letters, and `strip_of_row(i)`, of 8 to 30.
struct WordsDataset {
  static std::string letters(std::int64_t count, std::int64_t from) {
    std::string text;
    for (std::int64_t i = 0; i < count; ++i)
      text += static_cast<char>('a' + (from + i) % 26);
    return text;
  }
  static std::string text_of_row(std::int64_t i) {
    return letters(i * 7 % 23, i);
  }
  static std::string strip_of_row(std::int64_t i) {
    return letters(8 + i * 5 % 23, i);
  }

  FakeTable table;
  TableDatasetOptions options;

  explicit WordsDataset(std::int64_t rows = 300) {
    table.schema.columns = {
        {.name = "id", .declared = "int64", .primary_key = true},
        {.name = "text", .declared = "text"},
        {.name = "strip", .declared = "text"},
        {.name = "number", .declared = "float64"}};
    for (std::int64_t i = 0; i < rows; ++i)
      table.rows.push_back(
          {i, text_of_row(i), strip_of_row(i), static_cast<double>(i)});
    options.cache = "ram";
  }

  void add(std::string name, std::shared_ptr<const FieldKind> kind) {
    options.fields.push_back({std::move(name), std::move(kind)});
  }
  void add_letters(Lengths lengths,
                   Letters::Wrong wrong = Letters::Wrong::nothing) {
    add("text", std::make_shared<Letters>("text", "text", lengths, wrong));
  }
  void add_strip() {
    add("strip", std::make_shared<Strip>("strip", "strip", 8));
  }
  void add_number() {
    for (Field& field : parse_fields(
             Json::parse(R"({"number": {"columns": ["number"]}})", "test"),
             "fields"))
      options.fields.push_back(std::move(field));
  }

  std::shared_ptr<const TableDataset> prepare(Device& device) const {
    return TableDataset::prepare(
        options, std::make_unique<FakeSource>(table, requests_of(options)),
        device);
  }
};

}  // namespace penstock
