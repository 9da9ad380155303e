// How long does it take to parse the JSON list of one row?
//
// Rows of about 1 KB with 3 to 10 receivers of 7 keys are read (a) by our
// parsing alone, which also checks them, and (b) by a plain simdjson on-demand
// loop as one writes it from its manual. Both run in turns on one thread; their
// numbers are compared bit for bit. Beside them (c) the whole stage,
// BlockParser: parsing, keys, a hash of each row, notes, and memory that the
// rows keep.
//
//     bench_json_set [ROWS [REPEATS]]
#include <algorithm>
#include <bit>

#include "bench/measure.h"
#include "bench/our_json.h"
#include "bench/plain_json.h"
#include "penstock/dataset/dataset.h"

namespace penstock {
namespace {

struct Workload {
  const char* name;
  const char* comma;
  const char* colon;
};
const Workload kWorkloads[] = {{"compact", ",", ":"}, {"spaced", ", ", ": "}};

const std::vector<std::string> kKeys = {
    "snr_db", "freq_offset_hz", "lat", "lon", "alt_m", "signal_present"};

constexpr std::int64_t kBlockRows = 1024;  // as the loader asks for

std::string receivers(Random& random, const Workload& work) {
  std::string text = "[";
  auto count = 3 + random.below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    bool first = true;
    auto member = [&](const char* key, const std::string& value) {
      text += first ? std::string("{") : std::string(work.comma);
      text += "\"" + std::string(key) + "\"" + work.colon + value;
      first = false;
    };
    auto number = [&](double from, double to) {
      return Json(from + (to - from) * random.uniform()).dump();
    };
    if (i > 0) text += work.comma;
    member("station", "\"SDR-" + std::to_string(random.below(40)) + "\"");
    member("lat", number(44, 47));
    member("lon", number(7, 12));
    member("alt_m", random.below(20) == 0 ? "null" : number(0, 900));
    member("snr_db", number(-12, 40));
    if (random.below(20) != 0) member("freq_offset_hz", number(-2000, 2000));
    member("signal_present", random.below(4) != 0 ? "true" : "false");
    text += "}";
  }
  return text + "]";
}

Block rows_of_json(std::int64_t first, std::int64_t rows,
                   const Workload& work) {
  Block block;
  block.rows = rows;
  block.columns.emplace_back().type = ColumnType::json;
  for (std::int64_t row = first; row < first + rows; ++row) {
    Random random(7, 0, static_cast<std::uint64_t>(row), 1);
    block.columns[0].append_text(receivers(random, work));
  }
  return block;
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Rows as a source hands them out, with the keys of each block.
struct Rows {
  std::vector<Block> blocks;
  std::vector<KeyList> keys;
};

Rows rows_of(const Workload& work, std::int64_t rows) {
  Rows made;
  for (std::int64_t first = 0; first < rows; first += kBlockRows) {
    std::int64_t count = std::min(kBlockRows, rows - first);
    made.blocks.push_back(rows_of_json(first, count, work));
    KeyList& keys = made.keys.emplace_back();
    for (std::int64_t row = 0; row < count; ++row)
      keys.append_integer(first + row);
  }
  return made;
}

Json measure(const Workload& work, std::int64_t rows, int repeats) {
  const Rows read = rows_of(work, rows);
  const std::vector<Block>& blocks = read.blocks;
  const std::vector<KeyList>& keys = read.keys;
  JsonSet set{
      .column = "receivers", .keys = kKeys, .max = 10, .standardize = true};
  BlockParser parser(
      {.fields = bind_fields({{"receivers", make_json_set("receivers", set)}},
                             {{.name = "receivers"}}, {ColumnType::json}),
       .columns = {"receivers"}});
  OurJson ours(set);
  PlainJson plain(kKeys, "signal_present");
  std::size_t bytes = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    ParseNotes notes;
    ParsedBlock parsed = parser.parse(keys[b], block, notes);
    std::span<const double> expected = plain.parse(block.columns[0]);
    PENSTOCK_ASSERT(
        std::ranges::equal(ours.parse(block.columns[0]), expected, same_bits) &&
            std::ranges::equal(parsed.fields[0].bytes.as<double>(), expected,
                               same_bits),
        "all read the same numbers");
    bytes += block.columns[0].values.size();
  }
  double per_row = 1e6 / static_cast<double>(rows);
  auto penstock = [&] {
    return per_row * cpu_seconds([&] {
             for (const Block& block : blocks) ours.parse(block.columns[0]);
           });
  };
  auto stage = [&] {
    return per_row * cpu_seconds([&] {
             ParseNotes notes;
             for (std::size_t b = 0; b < blocks.size(); ++b)
               parser.parse(keys[b], blocks[b], notes);
           });
  };
  auto simdjson = [&] {
    return per_row * cpu_seconds([&] {
             for (const Block& block : blocks) plain.parse(block.columns[0]);
           });
  };
  std::vector<Repeats> times = in_turns(repeats, {penstock, simdjson, stage});
  Json result;
  result["workload"] = work.name;
  result["bytes_per_row"] =
      static_cast<double>(bytes) / static_cast<double>(rows);
  result["equal"] = true;
  result["penstock_us_per_row"] = times[0].json();
  result["simdjson_us_per_row"] = times[1].json();
  result["stage_us_per_row"] = times[2].json();
  result["ratio"] = times[0].median() / times[1].median();
  result["stage_ratio"] = times[2].median() / times[1].median();
  result["must_reach"] = "ratio <= 0.65";
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t rows = argument(count, arguments, 1, 20000);
  auto repeats = static_cast<int>(argument(count, arguments, 2, 9));
  Json result = result_of(
      "json_set",
      "How long does it take to parse the JSON list of one row, on one thread?",
      count, arguments);
  result["rows"] = rows;
  result["simdjson"] = simdjson_version();
  result["simdjson_instructions"] = simdjson_instructions();
  for (const Workload& work : kWorkloads)
    result["results"].push_back(measure(work, rows, repeats));
  return finish(result);
}
