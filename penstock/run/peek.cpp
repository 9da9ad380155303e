#include "penstock/run/peek.h"

#include "penstock/base/base.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

constexpr std::int64_t kShownRows = 3;
constexpr std::size_t kShownBytes = 200;
constexpr std::int64_t kShownValues = 8;

Json number_json(const Column& column, std::int64_t row) {
  switch (column.type.dtype) {
    case Dtype::float32:
    case Dtype::float64:
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

}  // namespace

Json peek(const std::string& uri) {
  SourceSpec spec = parse_source_spec(Json(uri), "source");
  Schema schema = read_schema(spec);
  std::vector<ColumnRequest> wanted;
  for (const ColumnInfo& column : schema.columns)
    wanted.push_back({column.name, ReadAs::value});
  std::unique_ptr<Source> source = open_source(spec, wanted, {.keys = false});

  Json json;
  json["source"] = source->shown();
  json["columns"] = Json::Array{};
  for (const ColumnInfo& column : schema.columns) {
    Json entry;
    entry["name"] = column.name;
    entry["type"] = column.declared;
    if (column.primary_key) entry["primary_key"] = true;
    json["columns"].push_back(std::move(entry));
  }
  Json first = Json::Array{};
  std::int64_t rows = 0;
  bool whole = true;
  Nanoseconds start = wall_clock().now();
  for (const Partition& partition : source->partitions(1)) {
    source->open_reader()->scan(partition, {}, [&](KeyList&, Block& block) {
      for (std::int64_t row = 0; row < block.rows && rows + row < kShownRows;
           ++row) {
        Json entry{Json::Object{}};
        for (std::size_t c = 0; c < wanted.size(); ++c)
          entry[wanted[c].column] = value_json(block.columns[c], row);
        first.push_back(std::move(entry));
      }
      rows += block.rows;
      whole = wall_clock().now() - start < std::chrono::seconds(2);
      return whole;
    });
  }
  double time = seconds(wall_clock().now() - start);
  std::optional<std::int64_t> estimate = source->count().rows;
  json["rows"] = whole ? Json(rows) : estimate ? Json(*estimate) : Json();
  json["rows_exact"] = whole;
  json["rows_per_s"] = time > 0 ? static_cast<double>(rows) / time : 0.0;
  json["first"] = std::move(first);
  return json;
}

}  // namespace penstock
