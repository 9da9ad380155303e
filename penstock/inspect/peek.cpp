#include "penstock/inspect/peek.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "penstock/base/base.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

constexpr std::int64_t kShownRows = 3;
constexpr std::size_t kShownBytes = 200;
constexpr std::int64_t kShownValues = 8;
constexpr std::size_t kTopValues = 5;
constexpr std::size_t kTopBytes = 24;
constexpr std::size_t kHistogramRanges = 8;

Json number_json(const Column& column, std::int64_t row) {
  switch (column.type.dtype) {
    case Dtype::float32:
    case Dtype::float64:
    case Dtype::float16:
    case Dtype::bfloat16:
      return column.as_float64(row);
    case Dtype::uint64:  // may be beyond what an integer of JSON holds here
      if (column.number<std::uint64_t>(row) >> 63)
        return column.as_float64(row);
      [[fallthrough]];
    default:
      return column.as_int64(row);
  }
}

Json value_json(const Column& column, std::int64_t row) {
  if (!column.valid(row)) return nullptr;
  switch (column.type.kind) {
    case ColumnKind::null:
      return nullptr;
    case ColumnKind::number:
      return number_json(column, row);
    case ColumnKind::binary:
      return std::to_string(column.text(row).size()) + " bytes";
    case ColumnKind::list: {
      Json values(Json::Array{});
      const std::int64_t begin = column.offset(row),
                         end = column.offset(row + 1);
      for (std::int64_t at = begin; at < end; ++at) {
        if (at - begin == kShownValues) {
          values.push_back("... " + std::to_string(end - begin) + " values");
          break;
        }
        values.push_back(value_json(column.children[0], at));
      }
      return values;
    }
    case ColumnKind::fixed:
      return std::string(name_of(column.type.dtype)) + text_of(column.item);
    case ColumnKind::dictionary:
      return value_json(column.children[0], column.as_int64(row));
    case ColumnKind::boolean:
      return column.boolean(row);
    case ColumnKind::uuid: {
      KeyList key(ColumnType::uuid);
      key.append(column, row);
      return key.json(0);
    }
    default:
      return beginning(column.text(row), kShownBytes);
  }
}

/// Seconds since 1970 UTC: "2013-01-01", or with a time "2013-01-01T05:00:00Z".
std::string shown_time(double seconds, bool whole_days) {
  using std::chrono::floor;
  const std::chrono::sys_seconds at{
      std::chrono::seconds(std::llround(std::floor(seconds)))};
  const auto day = floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  char text[64];
  int length = std::snprintf(
      text, sizeof(text), "%04d-%02u-%02u", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  if (!whole_days)
    length += std::snprintf(
        text + length, sizeof(text) - static_cast<std::size_t>(length),
        "T%02d:%02d:%02dZ", static_cast<int>(time.hours().count()),
        static_cast<int>(time.minutes().count()),
        static_cast<int>(time.seconds().count()));
  return {text, static_cast<std::size_t>(length)};
}

Json time_json(double seconds, bool whole_days) {
  constexpr double kFarthest = 2e11;  // some thousand years
  if (!(std::abs(seconds) < kFarthest)) return seconds;
  return shown_time(seconds, whole_days || std::fmod(seconds, 86400) == 0);
}

Json limit_json(const ColumnSurvey& column, double value,
                std::int64_t integer) {
  if (column.info.timestamp) return time_json(value, column.whole_days);
  // What int64 does not hold is told as a float64.
  const bool beyond = column.type.dtype == Dtype::uint64 && value >= 0x1p63;
  if (column.integer() && !beyond) return integer;
  return value;
}

/// The most frequent values, the first by name among equals.
Json top_json(const ColumnSurvey& column) {
  std::vector<std::pair<std::int64_t, std::string>> values;
  for (const auto& [value, rows] : column.values)
    values.emplace_back(-rows, value);
  const auto shown = std::min(values.size(), kTopValues);
  std::ranges::partial_sort(
      values, values.begin() + static_cast<std::ptrdiff_t>(shown));
  Json top(Json::Array{});
  for (std::size_t i = 0; i < shown; ++i) {
    Json one;
    one["value"] = beginning(values[i].second, kTopBytes);
    one["rows"] = -values[i].first;
    top.push_back(std::move(one));
  }
  return top;
}

/// What a scan reads behind the columns of the survey: times as
/// written.
std::vector<ColumnRequest> peeked_columns(const Schema& schema) {
  std::vector<ColumnRequest> wanted = surveyed_columns(schema);
  for (const ColumnInfo& column : schema.columns)
    if (column.timestamp) wanted.push_back({column.name, ReadAs::value});
  return wanted;
}

/// A row of a block that has the columns of peeked_columns().
Json row_json(const Schema& schema, const Block& block, std::int64_t row) {
  Json::Object json;
  std::size_t written = schema.columns.size();
  for (std::size_t c = 0; c < schema.columns.size(); ++c) {
    const bool time = schema.columns[c].timestamp;
    const Column& column = block.columns[time ? written++ : c];
    json.emplace_back(
        schema.columns[c].name,
        time && column.type == ColumnType::float64 && column.valid(row)
            ? time_json(column.float64(row), false)
            : value_json(column, row));
  }
  return json;
}

}  // namespace

Json column_json(const ColumnSurvey& column, std::int64_t rows) {
  Json json;
  json["name"] = column.info.name;
  json["type"] = column.info.declared;
  if (column.info.primary_key) json["primary_key"] = true;
  if (!column.info.index.empty()) json["index"] = column.info.index;
  json["nulls"] = column.missing;
  if (column.infinite > 0) json["infinite"] = column.infinite;
  const bool numbers = !column.sample.empty();
  const bool texts = column.text() && column.any(rows);
  json["min"] = numbers ? limit_json(column, column.min, column.least)
                : texts ? Json(beginning(column.first))
                        : Json();
  json["max"] = numbers ? limit_json(column, column.max, column.greatest)
                : texts ? Json(beginning(column.last))
                        : Json();
  const bool counted = column.distinct.count() > 0 || !column.any(rows);
  json["distinct"] =
      counted ? Json(std::min(column.distinct.count(), rows - column.missing))
              : Json();
  json["distinct_exact"] = counted && column.distinct.exact();
  if (numbers) {
    json["histogram"] = Json::Array{};
    for (std::int64_t count : column.histogram(kHistogramRanges))
      json["histogram"].push_back(count);
  }
  if (!column.values.empty() && !column.real()) json["top"] = top_json(column);
  return json;
}

Json left_out_json(const Schema& schema) {
  Json all(Json::Array{});
  for (const LeftOutColumn& column : schema.left_out) {
    Json one;
    one["name"] = column.name;
    one["why"] = column.why;
    one["next"] = column.next;
    all.push_back(std::move(one));
  }
  return all;
}

Json peek(const Json& given) {
  SourceSpec spec = parse_source_spec(given, "source");
  const Schema schema = surveyed_schema(spec);
  std::unique_ptr<Source> source = open_source(spec, peeked_columns(schema),
                                               {.keys = false, .fitted = true});
  Json first = Json::Array{};
  Surveyor surveyor(schema, *source);
  bool whole = true;
  Nanoseconds start = wall_clock().now();
  for (const Partition& partition : source->partitions(1)) {
    source->open_reader()->scan(partition, {}, [&](KeyList&, Block& block) {
      for (std::int64_t row = 0;
           row < block.rows && std::ssize(first.array()) < kShownRows; ++row)
        first.push_back(row_json(schema, block, row));
      surveyor.add(block);
      whole = wall_clock().now() - start < std::chrono::seconds(2);
      return whole;
    });
    if (!whole) break;
  }
  const double time = seconds(wall_clock().now() - start);
  const Survey& seen = surveyor.survey();
  Json json;
  json["source"] = source->shown();
  json["columns"] = Json::Array{};
  for (const ColumnSurvey& column : seen.columns)
    json["columns"].push_back(column_json(column, seen.rows));
  if (!schema.left_out.empty()) json["left_out"] = left_out_json(schema);
  std::optional<std::int64_t> estimate = source->count().rows;
  json["rows"] = whole ? Json(seen.rows) : estimate ? Json(*estimate) : Json();
  json["rows_exact"] = whole;
  json["seen"] = seen.rows;
  json["rows_per_s"] = time > 0 ? static_cast<double>(seen.rows) / time : 0.0;
  json["first"] = std::move(first);
  return json;
}

}  // namespace penstock
