// Preparing and packing rows takes no memory per row, once warm, and ends by an
// error if none exists.
#ifndef PENSTOCK_SANITIZED_THREAD
#include <gtest/gtest.h>

#include "penstock/base/fake/test_folder.h"
#include "penstock/base/fake/test_memory.h"
#include "penstock/base/random.h"
#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/dataset/table/table_dataset.h"
#include "penstock/dataset/table/value_memory.h"
#include "penstock/sources/fake/fake_store.h"
#include "penstock/transforms/fake/runs.h"

namespace penstock {
namespace {

constexpr std::int64_t kRows = 1000;

std::vector<Field> fields_of_job() {
  return parse_fields(Json::parse(R"({
      "r": {"json_set": {"column": "c", "keys": ["lat", "lon", "on"], "max": 4,
            "overflow": "strongest", "sort_by": "lat", "required": ["name"]},
            "standardize": true},
      "t": {"columns": ["x", "y"], "dtype": "float64"}})",
                                  "test"),
                      "fields");
}

Block rows_of_job(KeyList& keys) {
  Block block;
  block.rows = kRows;
  block.columns.resize(3);
  block.columns[0].type = ColumnType::json;
  keys = KeyList(ColumnType::text);
  Random random(1, 0, 0, 0);
  for (std::int64_t row = 0; row < kRows; ++row) {
    keys.append_bytes("a key too long for short strings " +
                      std::to_string(row));
    std::string list = "[";
    auto elements = 1 + random.below(8);
    for (std::uint64_t i = 0; i < elements; ++i)
      list += std::string(i == 0 ? "" : ",") + R"({"name": "ä", "lat": )" +
              Json(random.uniform()).dump() + R"(, "lon": )" +
              (row % 2 == 0 ? "null" : "1.5") +
              R"(, "on": true, "extra": [1, {"a": 2}]})";
    block.columns[0].append_text(list + "]");
    block.columns[1].append_float64(random.uniform());
    block.columns[2].append_float64(random.uniform());
  }
  return block;
}

BlockParser parser_of(const std::vector<Field>& fields) {
  return BlockParser(
      {.fields = bound_to_float64(fields),
       .columns = {"c", "x", "y"},
       .side_of = [](std::string_view) { return std::uint8_t{0}; }});
}

TEST(Allocations, DoNotGrowWithTheRowsOfABlock) {
  KeyList keys;
  Block block = rows_of_job(keys);
  BlockParser parser = parser_of(fields_of_job());
  ParseNotes notes;
  parser.parse(keys, block, notes);
  std::int64_t before = allocations;
  ParsedBlock parsed = parser.parse(keys, block, notes);
  EXPECT_EQ(parsed.rows(), kRows);
  EXPECT_LT(allocations - before, 40);  // of the result and of the notes
}

TEST(Allocations, EncodingTakesNone) {
  std::vector<Field> fields = fields_of_job();
  ParseNotes notes;
  std::vector<ParsedBlock> blocks;
  KeyList keys;
  Block block = rows_of_job(keys);
  blocks.push_back(parser_of(fields).parse(keys, block, notes));
  RowsById rows{blocks, {}};
  for (std::uint32_t row = 0; row < kRows; ++row) rows.refs.push_back({0, row});
  RowLayout layout = layout_of(fields);
  BoundFields bound = bound_to_float64(fields);
  RowEncoder encoder(bound, fields, layout,
                     fit_fields({bound, notes, rows, {}}));
  std::vector<std::byte> out(layout.row_bytes * kRows);
  encoder.encode(rows, 0, kRows, out.data());
  std::int64_t before = allocations;
  encoder.encode(rows, 0, kRows, out.data());
  EXPECT_EQ(allocations - before, 0);
}

TEST(ValueMemory, IsOfUseAfterMemoryWasShort) {
  const std::vector<std::byte> values(1000, std::byte{7});
  ValueMemory memory;
  const int failures = failures_of([&] {
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(memory.keep(values).span().back(), std::byte{7});
  });
  EXPECT_GT(failures, 0);
}

TEST(Preparing, EndsWhicheverAllocationFails) {
  const TestFolder folder;
  const std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  TableDatasetOptions options{
      {.fields = parse_fields(
           Json::parse(R"({"a": {"columns": ["value"]}})", "test"), "fields")},
      {.cache = "ram", .store_dir = folder.path("stores")}};
  options.workers = 2;
  for (const bool one_reader : {false, true}) {
    const int failures = failures_of([&] {
      TableDataset::prepare(options,
                            counting_store(100, {{.column = "value"}},
                                           {.global_lock = one_reader}),
                            *device);
    });
    EXPECT_GT(failures, 20);
  }
}

}  // namespace
}  // namespace penstock

#endif
