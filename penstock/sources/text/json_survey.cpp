#include "penstock/sources/text/json_survey.h"

#include <algorithm>

#include "penstock/base/error.h"

namespace penstock::text {
namespace {

namespace od = simdjson::ondemand;
using files::FileColumn;

constexpr int kDeepest = 32;  // objects in objects

}  // namespace

void JsonSurvey::look(const PlainText& text, const TextChunk& chunk) {
  lines_.each(text, chunk,
              [&](simdjson::error_code error, od::document& document,
                  std::int64_t line, std::string_view row) {
                od::object object;
                if (!error) error = document.get_object().get(object);
                if (!error) {
                  objects_ = true;
                  look(object, top_, "", 0);
                } else if (!objects_ && why_bad_.empty()) {
                  first_bad_ = text.place(line);
                  why_bad_ = why_bad_line(error, row, first_bad_);
                }
              });
}

void JsonSurvey::check_objects() const {
  if (objects_ || why_bad_.empty()) return;
  throw Error(ErrorKind::source,
              {.code = "files.damaged",
               .what = "cannot read the file as JSON lines",
               .where = first_bad_,
               .why = why_bad_,
               .next = "each line must be one object, {\"a\": 1}; a list of "
                       "them becomes such lines by jq -c '.[]'"});
}

std::vector<JsonColumn> JsonSurvey::columns(const FileSettings& settings,
                                            bool whole) const {
  std::vector<JsonColumn> columns;
  for (const std::string& path : order_) {
    const Seen& seen = seen_.at(path);
    std::string chosen = chosen_for(settings, path);
    const bool json = seen.list || (seen.object && !splits(path));
    if (inside_json(path) || (seen.object && !json && chosen.empty())) continue;
    Looks looks = json ? Looks::text : seen.scalar;
    if (looks == Looks::nothing && !whole) looks = Looks::text;
    JsonColumn& made = columns.emplace_back();
    made.chosen = !chosen.empty();
    if (made.chosen)
      made.column = column_chosen(path, chosen);
    else if (json)
      made.column = {
          .name = path, .declared = "json", .type = ColumnType::json};
    else
      made.column = column_that_looks(path, looks);
    if (!made.chosen && seen.others > 0 && seen.numbers > seen.others)
      made.numbers = seen.number;
  }
  // What is chosen is a column, also where no line has it.
  for (const auto& [path, type] : settings.columns)
    if (std::ranges::none_of(columns, [&name = path](const JsonColumn& column) {
          return column.column.name == name;
        }))
      columns.push_back({.column = column_chosen(path, type), .chosen = true});
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
        ++seen.others;
        break;
      case od::json_type::object: {
        seen.object = true;
        ++seen.others;
        od::object inner;
        if (depth + 1 >= kDeepest) seen.list = true;
        if (seen.list) break;
        if (value.get_object().get(inner)) return;
        look(inner, *member->members, member->path + ".", depth + 1);
        break;
      }
      case od::json_type::string:
        seen.scalar = wider(seen.scalar, Looks::text);
        ++seen.others;
        break;
      case od::json_type::boolean:
      case od::json_type::number: {
        const Looks looks =
            reader_.looks(without_space(value.raw_json_token()), plain_);
        seen.scalar = wider(seen.scalar, looks);
        const bool number = looks == Looks::integer || looks == Looks::real;
        if (number) seen.number = wider(seen.number, looks);
        ++(number ? seen.numbers : seen.others);
        break;
      }
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
