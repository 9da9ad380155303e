#include "penstock/sources/text/json_survey.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/sources/text/json_syntax.h"

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
               .next = "each line must be one object, {\"a\": 1}; to convert a "
                       "list of objects use jq -c '.[]'"});
}

// An object becomes its members where every value at its path is an object (or
// null) and some have members. A path that holds lists, or objects beside other
// values, stays one column of JSON text, and what lies inside gives no columns.
JsonColumns JsonSurvey::columns(const FileSettings& settings,
                                bool whole) const {
  JsonColumns columns{.whole = whole};
  const ChosenTypes chosen(settings);
  const std::set<const Seen*> inside = inside_json(settings);
  for (const std::string& path : order_) {
    const Seen& seen = seen_.at(path);
    if (inside.contains(&seen)) continue;
    const std::string_view type = chosen.of(path);
    const bool json = seen.list || (seen.object && !seen.splits());
    if (seen.splits() && type.empty()) {
      columns.paths.emplace(path, JsonPath::object);
      continue;
    }
    Looks looks = json ? Looks::text : seen.scalar;
    if (looks == Looks::nothing && !whole) looks = Looks::text;
    JsonColumn& made = columns.all.emplace_back();
    made.chosen = !type.empty();
    if (made.chosen)
      made.column = column_chosen(path, type);
    else if (json)
      made.column = {
          .name = path, .declared = "json", .type = ColumnType::json};
    else
      made.column = column_that_looks(path, looks);
    if (!made.chosen && seen.others > 0 && seen.numbers > seen.others)
      made.numbers = seen.number;
    columns.paths.emplace(path, JsonPath::column);
  }
  // What is chosen is a column, also where no line has it.
  for (const auto& [path, type] : settings.columns) {
    if (!columns.paths.emplace(path, JsonPath::column).second) continue;
    columns.all.push_back(
        {.column = column_chosen(path, type), .chosen = true});
    for (std::size_t dot = path.find('.'); dot != path.npos;
         dot = path.find('.', dot + 1))
      columns.paths.emplace(path.substr(0, dot), JsonPath::object);
  }
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
    Seen& at = seen->second;
    if (std::ranges::find(at.within, level.of) == at.within.end())
      at.within.push_back(level.of);
    if (level.of != nullptr) level.of->members = true;
    known = level.by_name.emplace(name, level.all.size()).first;
    level.all.push_back({.name = Name(name),
                         .path = std::move(path),
                         .seen = &at,
                         .members = std::make_unique<Level>()});
    level.all.back().members->of = &at;
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
        const std::string_view token = without_space(value.raw_json_token());
        if (type == od::json_type::number && !is_json_number(token)) return;
        const Looks looks = reader_.looks(token, plain_);
        seen.scalar = wider(seen.scalar, looks);
        const bool number = looks == Looks::integer || looks == Looks::real;
        if (number) seen.number = wider(seen.number, looks);
        ++(number ? seen.numbers : seen.others);
        break;
      }
    }
  }
}

/// The paths of which every value lies in an object that stays JSON, as one
/// does whose type the job chooses.
std::set<const JsonSurvey::Seen*> JsonSurvey::inside_json(
    const FileSettings& settings) const {
  std::set<const Seen*> inside, chosen;
  for (const auto& column : settings.columns)
    if (const auto seen = seen_.find(column.first); seen != seen_.end())
      chosen.insert(&seen->second);
  for (const auto& [path, seen] : seen_)  // "a" comes before "a.b"
    if (std::ranges::all_of(seen.within, [&](const Seen* outer) {
          return outer != nullptr &&
                 (!outer->splits() || chosen.contains(outer) ||
                  inside.contains(outer));
        }))
      inside.insert(&seen);
  return inside;
}

}  // namespace penstock::text
