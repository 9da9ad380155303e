// How long does it take to parse the JSON list of one row?
//
// Rows of about 1 KB with 3 to 10 receivers of 7 keys are read (a) by
// Preparer, which also checks, sorts out and counts, and (b) by a plain
// simdjson on-demand loop as one writes it from its manual. Both run in turns,
// five times each, on one thread; their numbers are compared bit for bit.
// Prints one JSON document.
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/transforms/transforms.h"

using namespace penstock;

namespace {

const std::vector<std::string> kKeys = {
    "snr_db", "freq_offset_hz", "lat", "lon", "alt_m", "signal_present"};

constexpr std::int64_t kBlockRows = 2048;

std::string receivers(Random& random, const char* comma, const char* colon) {
  std::string text = "[";
  auto count = 3 + random.below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    bool first = true;
    auto member = [&](const char* key, const std::string& value) {
      text += (first ? std::string("{\"") : comma + std::string("\"")) + key +
              "\"" + colon + value;
      first = false;
    };
    auto number = [&](double from, double to) {
      return Json(from + (to - from) * random.uniform()).dump();
    };
    if (i > 0) text += comma;
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

Block rows_of_json(std::int64_t first, std::int64_t rows, bool spaced) {
  Block block;
  block.rows = rows;
  block.columns.resize(2);
  block.columns[0].type = ColumnType::int64;
  block.columns[1].type = ColumnType::json;
  for (std::int64_t row = first; row < first + rows; ++row) {
    Random random(7, 0, static_cast<std::uint64_t>(row), 1);
    block.columns[0].append_int64(row);
    block.columns[1].append_text(spaced ? receivers(random, ", ", ": ")
                                        : receivers(random, ",", ":"));
  }
  return block;
}

// The other side: what a user of simdjson writes.
struct PlainLoop {
  simdjson::ondemand::parser parser;
  std::vector<double> values;

  void parse(const char* text, std::size_t size, std::size_t readable) {
    auto document = parser.iterate(text, size, readable);
    std::size_t count_at = values.size();
    values.push_back(0);
    for (simdjson::ondemand::object element : document.get_array()) {
      std::size_t first = values.size();
      values.resize(first + kKeys.size(), std::nan(""));
      for (auto field : element) {
        std::string_view key = field.unescaped_key();
        auto found = std::ranges::find(kKeys, key);
        if (found == kKeys.end()) continue;
        auto slot = first + static_cast<std::size_t>(found - kKeys.begin());
        simdjson::ondemand::value value = field.value();
        if (value.is_null()) continue;
        values[slot] = key == "signal_present"
                           ? static_cast<double>(bool(value.get_bool()))
                           : double(value.get_double());
      }
      values[count_at] += 1;
    }
  }

  const std::vector<double>& parse(const Block& block) {
    values.clear();
    const ColumnData& column = block.columns[1];
    auto* end = reinterpret_cast<const char*>(column.values.data()) +
                column.values.size() + Bytes::kPadding;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::string_view text = column.text(row);
      parse(text.data(), text.size(),
            static_cast<std::size_t>(end - text.data()));
    }
    return values;
  }
};

template <class Act>
double microseconds(Act act) {
  auto start = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> of) {
  std::ranges::sort(of);
  return of[of.size() / 2];
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

Json measure(std::int64_t rows, int repeats, bool spaced) {
  // Blocks as a source hands them out.
  std::vector<Block> blocks;
  for (std::int64_t first = 0; first < rows; first += kBlockRows)
    blocks.push_back(
        rows_of_json(first, std::min(kBlockRows, rows - first), spaced));
  JsonSet set{.column = "receivers", .keys = kKeys, .max = 10};
  Preparer preparer({.fields = {Field{"receivers", set, true}}});
  PlainLoop plain;
  bool equal = true;
  std::size_t bytes = 0;
  for (const Block& block : blocks) {
    Seen seen;
    RawBlock ours = preparer.prepare(block, seen);
    equal =
        equal && std::ranges::equal(ours.values, plain.parse(block), same_bits);
    bytes += block.columns[1].values.size();
  }
  std::vector<double> fast, peer;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    fast.push_back(microseconds([&] {
                     Seen seen;
                     for (const Block& block : blocks)
                       preparer.prepare(block, seen);
                   }) /
                   static_cast<double>(rows));
    peer.push_back(microseconds([&] {
                     for (const Block& block : blocks) plain.parse(block);
                   }) /
                   static_cast<double>(rows));
  }
  Json result;
  result["bytes_per_row"] =
      static_cast<double>(bytes) / static_cast<double>(rows);
  result["equal"] = equal;
  result["penstock_us_per_row"] = median(fast);
  result["simdjson_us_per_row"] = median(peer);
  result["ratio"] = median(fast) / median(peer);
  Json::Array ratios;
  for (std::size_t i = 0; i < fast.size(); ++i)
    ratios.push_back(fast[i] / peer[i]);
  result["ratios"] = std::move(ratios);
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  std::int64_t rows = count > 1 ? std::atoll(arguments[1]) : 20000;
  constexpr int kRepeats = 5;
  Json report;
  report["question"] = "parsing the JSON list of one row, one thread";
  report["rows"] = rows;
  report["repeats"] = kRepeats;
  report["simdjson"] = std::to_string(simdjson::SIMDJSON_VERSION_MAJOR) + "." +
                       std::to_string(simdjson::SIMDJSON_VERSION_MINOR) + "." +
                       std::to_string(simdjson::SIMDJSON_VERSION_REVISION);
  report["simdjson_stage_1"] = simdjson::get_active_implementation()->name();
  report["compact"] = measure(rows, kRepeats, false);
  report["spaced"] = measure(rows, kRepeats, true);
  std::cout << report.dump(2) << "\n";
  bool equal =
      report.find("compact")->find("equal")->value() == Json(true).value() &&
      report.find("spaced")->find("equal")->value() == Json(true).value();
  return equal ? 0 : 1;
}
