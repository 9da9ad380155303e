#include "penstock/sources/schema.h"

#include <algorithm>
#include <utility>

#include "penstock/sources/other_columns.h"

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
  for (const LeftOutColumn& one : schema.left_out)
    if (one.name == name)
      throw Error(ErrorKind::request,
                  {.code = "source.column_type",
                   .what = "cannot read column '" + name + "' of " + place,
                   .where = setting,
                   .why = one.why,
                   .next = one.next});
  std::vector<std::string> names;
  for (const ColumnInfo& column : schema.columns) names.push_back(column.name);
  std::string why = "the column does not exist",
              next = did_you_mean(name, names);
  const auto other =
      std::ranges::find(schema.left_out, kOtherColumns, &LeftOutColumn::name);
  if (other != schema.left_out.end()) {
    why += ", and " + other->why;
    next += "; or " + other->next + ": {\"" + name + "\": \"float64\"}";
  }
  throw Error(ErrorKind::request,
              {.code = "source.unknown_column",
               .what = "cannot read column '" + name + "' of " + place,
               .where = setting,
               .why = std::move(why),
               .next = std::move(next)});
}

namespace {

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

}  // namespace

Error condition_error(const SourceSpec& spec, const Schema& schema,
                      std::string why, const std::string& unknown_name) {
  return Error(ErrorKind::request,
               {.code = "source.where",
                .what = "cannot select rows of table '" + spec.table +
                        "' by '" + spec.where + "'",
                .where = "source.where",
                .why = std::move(why),
                .next = condition_hint(schema, unknown_name)});
}

void set_primary_key(const std::map<int, std::string>& key, Schema& schema) {
  for (const auto& [at, name] : key) schema.primary_key.push_back(name);
  for (ColumnInfo& column : schema.columns)
    column.primary_key = key.size() == 1 && column.name == key.begin()->second;
}

std::vector<const ColumnInfo*> key_columns(const Schema& schema,
                                           const std::vector<std::string>& key,
                                           const std::string& place) {
  std::vector<const ColumnInfo*> columns;
  for (const std::string& name : key.empty() ? schema.primary_key : key)
    columns.push_back(&column_of(schema, name, "source.key", place));
  return columns;
}

void refuse_no_key(const std::string& place, std::string why) {
  throw Error(ErrorKind::request,
              {.code = "source.no_key",
               .what = "cannot identify the rows of " + place,
               .where = "source.key",
               .why = std::move(why),
               .next = "name a column whose values are unique as source.key, "
                       "or several that are unique together"});
}

}  // namespace penstock
