#include "penstock/sources/text/json_survey.h"

#include <algorithm>

namespace penstock::text {
namespace {

namespace od = simdjson::ondemand;
using files::FileColumn;

constexpr int kDeepest = 32;  // objects in objects

}  // namespace

void JsonSurvey::look(const PlainText& text, const TextChunk& chunk) {
  lines_.each(text, chunk,
              [&](simdjson::error_code error, od::document& document,
                  std::int64_t, std::string_view) {
                od::object object;
                if (error || document.get_object().get(object)) return;
                look(object, top_, "", 0);
              });
}

std::vector<FileColumn> JsonSurvey::columns(const FileSettings& settings,
                                            bool whole) const {
  std::vector<FileColumn> columns;
  for (const std::string& path : order_) {
    const Seen& seen = seen_.at(path);
    std::string chosen = chosen_for(settings, path);
    const bool json = seen.list || (seen.object && !splits(path));
    if (inside_json(path) || (seen.object && !json && chosen.empty())) continue;
    Looks looks = json ? Looks::text : seen.scalar;
    if (looks == Looks::nothing && !whole) looks = Looks::text;
    if (!chosen.empty())
      columns.push_back(column_chosen(path, chosen));
    else if (json)
      columns.push_back(
          {.name = path, .declared = "json", .type = ColumnType::json});
    else
      columns.push_back(column_that_looks(path, looks));
  }
  // What is chosen is a column, also where no line has it.
  for (const auto& [path, type] : settings.columns)
    if (std::ranges::find(columns, path, &FileColumn::name) == columns.end())
      columns.push_back(column_chosen(path, type));
  return columns;
}

/// Null: its name is damaged.
JsonSurvey::Level::Member* JsonSurvey::member_of(Level& level, od::field& field,
                                                 const std::string& prefix,
                                                 std::size_t& next) {
  if (Level::Member* member = next_named(level.all, field, next)) return member;
  std::string_view name;
  if (field.unescaped_key().get(name)) return nullptr;
  auto known = level.by_name.find(name);
  if (known == level.by_name.end()) {
    std::string path = prefix + std::string(name);
    auto [seen, is_new] = seen_.try_emplace(path);
    if (is_new) order_.push_back(path);
    known = level.by_name.emplace(name, level.all.size()).first;
    level.all.push_back({.name = Name(name),
                         .path = std::move(path),
                         .seen = &seen->second,
                         .members = std::make_unique<Level>()});
  }
  next = known->second + 1;
  return &level.all[known->second];
}

void JsonSurvey::look(od::object& object, Level& level,
                      const std::string& prefix, int depth) {
  std::size_t next = 0;
  for (auto each : object) {
    od::field field;
    if (std::move(each).get(field)) return;
    od::value& value = field.value();
    od::json_type type;
    if (value.type().get(type)) return;
    const Level::Member* member = member_of(level, field, prefix, next);
    if (member == nullptr) return;
    Seen& seen = *member->seen;
    switch (type) {
      case od::json_type::null:
        break;
      case od::json_type::array:
        seen.list = true;
        break;
      case od::json_type::object: {
        seen.object = true;
        od::object inner;
        if (depth + 1 >= kDeepest) seen.list = true;
        if (seen.list) break;
        if (value.get_object().get(inner)) return;
        look(inner, *member->members, member->path + ".", depth + 1);
        break;
      }
      case od::json_type::string:
        seen.scalar = wider(seen.scalar, Looks::text);
        break;
      case od::json_type::boolean:
      case od::json_type::number:
        seen.scalar =
            wider(seen.scalar,
                  reader_.looks(without_space(value.raw_json_token()), plain_));
        break;
    }
  }
}

/// Whether an object is its members.
bool JsonSurvey::splits(const std::string& path) const {
  const Seen& seen = seen_.at(path);
  if (seen.list || seen.scalar != Looks::nothing) return false;
  auto inner = seen_.lower_bound(path + ".");
  return inner != seen_.end() && inner->first.starts_with(path + ".");
}

/// Whether an object around it stays JSON.
bool JsonSurvey::inside_json(const std::string& path) const {
  for (std::size_t dot = path.find('.'); dot != path.npos;
       dot = path.find('.', dot + 1)) {
    auto outer = seen_.find(path.substr(0, dot));
    if (outer != seen_.end() && outer->second.object && !splits(outer->first))
      return true;
  }
  return false;
}

}  // namespace penstock::text
