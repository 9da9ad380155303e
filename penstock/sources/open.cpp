#include <algorithm>
#include <iterator>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/name_index.h"
#include "penstock/base/plugin.h"
#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/plugin.h"
#include "penstock/sources/sources.h"

namespace penstock {

namespace {

/// The columns of the left one, then those that only the right one has.
Schema joined_schema(const SourceSpec& spec) {
  Schema schema = read_schema(spec.sources.at(0));
  Schema right = read_schema(spec.sources.at(1));
  const std::vector<ColumnInfo> left = schema.columns;
  const NameIndex names(left, &ColumnInfo::name);
  for (ColumnInfo& column : right.columns)
    if (!names.find(column.name)) schema.columns.push_back(std::move(column));
  std::ranges::move(right.left_out, std::back_inserter(schema.left_out));
  return schema;
}

void refuse_windows(const SourceSpec& spec,
                    const std::vector<ColumnRequest>& requests) {
  const SourceKind* kind = source_kind(spec.kind);
  if (kind == nullptr || kind->windows) return;
  for (const ColumnRequest& request : requests)
    if (request.window > 0)
      throw Error(
          ErrorKind::request,
          {.code = "source.window",
           .what = "cannot read windows of column '" + request.column + "'",
           .where = request.setting,
           .why =
               "rows of " + kind->shown +
               " are rows of a table, but windows are cut from one long array",
           .next = "leave \"window\" out, or read an array on disk "
                   "(npy, zarr, hdf5)"});
}

}  // namespace

std::unique_ptr<Source> open_source(const SourceSpec& spec,
                                    const std::vector<ColumnRequest>& requests,
                                    SourceOptions options) {
  if (spec.kind == kConcatenated)
    return open_concatenated(spec.sources, requests, options);
  if (spec.kind == kJoined)
    return open_joined(spec.sources.at(0), spec.sources.at(1), requests,
                       options);
  refuse_windows(spec, requests);
  std::unique_ptr<Source> source =
      source_plugin(spec.kind, plugin_folders())
          .open_source(spec_of_copy(spec), requests, options);
  if (!spec.stage.empty()) source = as_original(std::move(source), spec);
  source->identify_by(settings_in_identity(spec));
  return source;
}

std::unique_ptr<Source> open_concatenated(
    const std::vector<SourceSpec>& specs,
    const std::vector<ColumnRequest>& requests, SourceOptions options) {
  std::vector<std::unique_ptr<Source>> sources;
  for (const SourceSpec& spec : specs)
    sources.push_back(open_source(spec, requests, options));
  return concatenated(std::move(sources));
}

std::unique_ptr<Source> open_joined(const SourceSpec& left,
                                    const SourceSpec& right,
                                    const std::vector<ColumnRequest>& requests,
                                    SourceOptions options) {
  const Schema lefts = read_schema(left), rights = read_schema(right);
  std::vector<ColumnRequest> of_left, of_right;
  std::vector<JoinedColumn> columns;
  for (const ColumnRequest& request : requests) {
    // A column that neither has is refused by the left one.
    bool from_right = lefts.find(request.column) == nullptr &&
                      rights.find(request.column) != nullptr;
    std::vector<ColumnRequest>& own = from_right ? of_right : of_left;
    columns.push_back({from_right, own.size()});
    own.push_back(request);
  }
  return joined(open_source(left, of_left, options),
                open_source(right, of_right, options), std::move(columns));
}

Schema read_schema(const SourceSpec& spec) {
  if (spec.kind == kConcatenated) return read_schema(spec.sources.at(0));
  if (spec.kind == kJoined) return joined_schema(spec);
  return source_plugin(spec.kind, plugin_folders()).read_schema(spec);
}

SourceSpec with_column_types(
    SourceSpec spec, const Schema& schema,
    const std::vector<std::pair<std::string, std::string>>& types) {
  const SourceKind* kind = source_kind(spec.kind);
  if (kind == nullptr || !kind->guesses_types) return spec;
  auto number = [](const std::string& type) {
    return type == "int64" || type == "float64";
  };
  auto& chosen = std::any_cast<FileSettings&>(spec.own).columns;
  const std::size_t own = chosen.size();
  for (const auto& one : types) {
    const std::string &name = one.first, &type = one.second;
    const ColumnInfo* column = schema.find(name);
    if (column == nullptr || column->declared == type) continue;
    if (number(column->declared) && number(type)) continue;
    const auto end = chosen.begin() + static_cast<std::ptrdiff_t>(own);
    const bool named = std::any_of(chosen.begin(), end, [&](const auto& its) {
      return its.first == name;
    });
    if (!named && std::ranges::count(column_type_names(), type) > 0)
      chosen.emplace_back(name, type);
  }
  return spec;
}

std::unique_ptr<TableWriter> create_table(const SourceSpec& spec,
                                          const std::vector<NewColumn>& columns,
                                          bool replace) {
  return source_plugin(spec.kind, plugin_folders())
      .create_table(spec, columns, replace);
}

}  // namespace penstock
