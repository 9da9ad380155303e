#pragma once

#include <memory>
#include <utility>

#include "penstock/dataset/table/table_dataset.h"
#include "penstock/sources/fake/fake_source.h"

namespace penstock {

/// Its fields, `more` added to each section.
inline std::vector<Field> fake_fields(const std::string& more = "") {
  return parse_fields(
      Json::parse(R"({"items": {"json_set": {"column": "items",
                                             "keys": ["a", "b"], "max": 4})" +
                      more + R"(}, "value": {"columns": ["value"])" + more +
                      "}}",
                  "test"),
      "fields");
}

/// A data set over a counting table in memory, for the tests of this room.
/// Row i has value i and 1 + i % 5 items {"a": i, "b": j}.
struct FakeDataset {
  CountingOptions table;
  FakeTrouble trouble;
  TableDatasetOptions options;
  FakeSource* source = nullptr;  ///< owned by the data set

  FakeDataset() {
    options.fields = fake_fields();
    options.cache = "ram";
  }

  std::shared_ptr<const TableDataset> prepare(Device& device) {
    std::vector<ColumnRequest> wanted = requests_of(options);
    auto made =
        std::make_unique<FakeSource>(counting_table(table), wanted, trouble);
    source = made.get();
    return TableDataset::prepare(options, std::move(made), device);
  }
};

}  // namespace penstock
