// Preparing and packing rows takes no memory per row, once warm: this program
// counts what it allocates.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "penstock/base/random.h"
#include "penstock/transforms/transforms.h"

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

Block rows_of_job() {
  Block block;
  block.rows = kRows;
  block.columns.resize(4);
  block.columns[0].type = ColumnType::text;
  block.columns[1].type = ColumnType::json;
  Random random(1, 0, 0, 0);
  for (std::int64_t row = 0; row < kRows; ++row) {
    block.columns[0].append_text("a key too long for short strings " +
                                 std::to_string(row));
    std::string list = "[";
    auto elements = 1 + random.below(8);
    for (std::uint64_t i = 0; i < elements; ++i)
      list += std::string(i == 0 ? "" : ",") + R"({"name": "ä", "lat": )" +
              Json(random.uniform()).dump() +
              R"(, "lon": null, "on": true, "extra": [1, {"a": 2}]})";
    block.columns[1].append_text(list + "]");
    block.columns[2].append_float64(random.uniform());
    block.columns[3].append_float64(random.uniform());
  }
  return block;
}

TEST(Allocations, DoNotGrowWithTheRowsOfABlock) {
  Block block = rows_of_job();
  Preparer preparer({.fields = fields_of_job(),
                     .mark = [](std::string_view) { return std::uint8_t{1}; }});
  Seen seen;
  preparer.prepare(block, seen);
  std::int64_t before = allocations;
  RawBlock raw = preparer.prepare(block, seen);
  EXPECT_EQ(raw.rows(), kRows);
  EXPECT_LT(allocations - before, 30);  // of the result and of the counts
}

TEST(Allocations, PackingTakesNone) {
  std::vector<Field> fields = fields_of_job();
  Preparer preparer({.fields = fields});
  Seen seen;
  RawBlock raw = preparer.prepare(rows_of_job(), seen);
  Fitted fitted = fit(fields, seen, {},
                      {.count = raw.rows(),
                       .row = [&](SampleId id) { return raw.row(id); },
                       .is_train = [](SampleId) { return true; }});
  RowLayout layout = layout_of(fields);
  std::vector<std::byte> out(layout.row_bytes);
  std::function<std::string()> name = [] { return std::string(); };
  std::int64_t before = allocations;
  for (std::int64_t row = 0; row < raw.rows(); ++row)
    pack_row(fields, layout, fitted, raw.row(row), out.data(), name);
  EXPECT_EQ(allocations - before, 0);
}

}  // namespace
}  // namespace penstock
