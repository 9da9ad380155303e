#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/dataset/packed/packed_dataset.h"
#include "penstock/dataset/prepare_dataset.h"
#include "penstock/sources/fake/fake_source.h"

namespace penstock {

/// A table of documents that are tokenised already, for tests: document i has
/// i * 37 % 61 tokens, which tokens_of(i) gives. Some have none.
struct TokenTable {
  static std::vector<std::int64_t> tokens_of(std::int64_t i) {
    std::vector<std::int64_t> tokens;
    for (std::int64_t t = 0; t < i * 37 % 61; ++t)
      tokens.push_back((i * 7 + t) % 5000);
    return tokens;
  }
  static std::string text_of(const std::vector<std::int64_t>& tokens) {
    std::string text = "[";
    for (std::int64_t token : tokens)
      text += (text.size() > 1 ? ", " : "") + std::to_string(token);
    return text + "]";
  }

  FakeTable table;
  TableDatasetOptions options;

  explicit TokenTable(std::int64_t rows = 300) {
    table.schema.columns = {
        {.name = "id", .declared = "int64", .primary_key = true},
        {.name = "ids", .declared = "text"},
        {.name = "number", .declared = "float64"}};
    for (std::int64_t i = 0; i < rows; ++i)
      table.rows.push_back({i, text_of(tokens_of(i)), static_cast<double>(i)});
    options.cache = "ram";
  }

  /// `settings`: of the field, as they stand in a job.
  TokenTable& field(const std::string& settings,
                    const std::string& name = "tokens",
                    const std::string& others = "") {
    options.fields = parse_fields(
        Json::parse(R"({")" + name + R"(": {"tokens": {"column": "ids")" +
                        settings + "}}" + others + "}",
                    "test"),
        "fields");
    return *this;
  }

  std::shared_ptr<const Dataset> prepare(Device& device) const {
    return prepare_dataset(
        options, std::make_unique<FakeSource>(table, requests_of(options)),
        device);
  }
};

}  // namespace penstock
