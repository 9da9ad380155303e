// Preparing and packing rows takes no memory per row, once warm: this program
// counts what it allocates. The thread sanitizer has an operator new of its
// own.
#ifndef PENSTOCK_SANITIZED_THREAD
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "penstock/base/random.h"
#include "penstock/dataset/parsed_rows.h"
#include "penstock/transforms/fake/runs.h"

namespace {
std::atomic<std::int64_t> allocations{0};  // relaxed: only counted
}  // namespace

// Not inlined, or g++ takes free() for the wrong partner of new.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size,
                                     const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

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
              Json(random.uniform()).dump() +
              R"(, "lon": null, "on": true, "extra": [1, {"a": 2}]})";
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

}  // namespace
}  // namespace penstock

#endif
