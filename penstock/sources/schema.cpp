#include "penstock/sources/schema.h"

#include <algorithm>

#include "penstock/base/error.h"

namespace penstock {

std::optional<ColumnType> type_given_by(ReadAs as) {
  switch (as) {
    case ReadAs::number:
      return ColumnType::float64;
    case ReadAs::integer:
      return ColumnType::int64;
    case ReadAs::json:
      return ColumnType::json;
    case ReadAs::key:
    case ReadAs::value:
      break;
  }
  return std::nullopt;
}

const ColumnInfo& column_of(const Schema& schema, const std::string& name,
                            const std::string& setting,
                            const std::string& place) {
  if (const ColumnInfo* found = schema.find(name)) return *found;
  std::vector<std::string> names;
  for (const ColumnInfo& column : schema.columns) names.push_back(column.name);
  throw Error(ErrorKind::request,
              {.code = "source.unknown_column",
               .what = "cannot read column '" + name + "' of " + place,
               .where = setting,
               .why = "there is no such column",
               .next = did_you_mean(name, names)});
}

std::string condition_hint(const Schema& schema,
                           const std::string& unknown_name) {
  constexpr std::size_t kMostNames = 12;
  std::vector<std::string> names;
  for (const ColumnInfo& column : schema.columns) names.push_back(column.name);
  std::string found = unknown_name.empty() ? "" : nearest(unknown_name, names);
  if (!found.empty()) return "did you mean '" + found + "'?";
  std::string hint = "write an SQL condition over its columns: ";
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    hint += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNames)
    hint += " and " + std::to_string(names.size() - kMostNames) + " more";
  return hint;
}

const ColumnInfo& key_of(const Schema& schema, const std::string& key,
                         const std::string& place) {
  if (!key.empty()) return column_of(schema, key, "source.key", place);
  auto found =
      std::ranges::find(schema.columns, true, &ColumnInfo::primary_key);
  if (found != schema.columns.end()) return *found;
  throw Error(ErrorKind::request,
              {.code = "source.no_key",
               .what = "cannot identify the rows of " + place,
               .where = "source.key",
               .why = "it has no primary key of a single column",
               .next = "name a column whose values are unique as source.key"});
}

}  // namespace penstock
