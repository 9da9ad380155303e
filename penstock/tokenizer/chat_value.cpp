#include "penstock/tokenizer/chat_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace penstock::chat {
namespace {

std::string shown_number(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char text[64];
  // The shortest that is read back the same; Python's point where it is whole.
  const double size = std::fabs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(
      text, text + sizeof text, number,
      plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string made(text, end.ptr);
  if (plain && made.find('.') == made.npos) made += ".0";
  return made;
}

/// repr() of a text.
std::string quoted(const std::string& text) {
  const bool doubled =
      text.find('\'') != text.npos && text.find('"') == text.npos;
  const char mark = doubled ? '"' : '\'';
  std::string made(1, mark);
  for (char c : text) {
    if (c == mark || c == '\\') made += '\\';
    if (c == '\n')
      made += "\\n";
    else if (c == '\r')
      made += "\\r";
    else if (c == '\t')
      made += "\\t";
    else
      made += c;
  }
  return made + mark;
}

void check_walk(int depth) {
  work(1);
  if (depth > kDeepestWalk)
    exceed("a value contains itself, or is nested too deep");
}

void write_shown(const Value& value, int depth, std::string& out);

void write_repr(const Value& value, int depth, std::string& out) {
  if (value.text() != nullptr)
    append(out, quoted(*value.text()));
  else
    write_shown(value, depth, out);
}

/// str() of Python.
void write_shown(const Value& value, int depth, std::string& out) {
  check_walk(depth);
  const char* between = "";
  if (const auto* list = value.items()) {
    append(out, "[");
    for (const Value& item : *list) {
      append(out, std::exchange(between, ", "));
      write_repr(item, depth + 1, out);
    }
    append(out, "]");
  } else if (const auto* map = value.map()) {
    append(out, "{");
    for (const auto& [key, member] : map->members) {
      append(out, std::exchange(between, ", "));
      append(out, quoted(key));
      append(out, ": ");
      write_repr(member, depth + 1, out);
    }
    append(out, "}");
  } else {
    append(out, value.shown());
  }
}

std::string json_text(const std::string& text) {
  std::string made = "\"";
  for (char c : text) {
    constexpr char digits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (made += '\\') += c;
    else if (c == '\n')
      made += "\\n";
    else if (c == '\r')
      made += "\\r";
    else if (c == '\t')
      made += "\\t";
    else if (c == '\b')
      made += "\\b";
    else if (c == '\f')
      made += "\\f";
    else if (byte < 32)
      ((made += "\\u00") += digits[byte >> 4]) += digits[byte & 15];
    else
      made += c;
  }
  return made + '"';
}

void write_json(const Value& value, int indent, int depth, std::string& out) {
  check_walk(depth);
  auto line = [&](int deep) {
    if (indent > 0)
      append(out, "\n" + std::string(static_cast<std::size_t>(indent) *
                                         static_cast<std::size_t>(deep),
                                     ' '));
  };
  const char* comma = indent > 0 ? "," : ", ";
  if (const auto* list = value.items()) {
    append(out, "[");
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i > 0) append(out, comma);
      line(depth + 1);
      write_json((*list)[i], indent, depth + 1, out);
    }
    if (!list->empty()) line(depth);
    append(out, "]");
  } else if (const auto* map = value.map()) {
    append(out, "{");
    for (std::size_t i = 0; i < map->members.size(); ++i) {
      if (i > 0) append(out, comma);
      line(depth + 1);
      append(out, json_text(map->members[i].first) + ": ");
      write_json(map->members[i].second, indent, depth + 1, out);
    }
    if (!map->members.empty()) line(depth);
    append(out, "}");
  } else if (value.text() != nullptr) {
    append(out, json_text(*value.text()));
  } else if (const bool* flag = value.as<bool>()) {
    append(out, *flag ? "true" : "false");
  } else if (value.as<Value::None>() != nullptr) {
    append(out, "null");
  } else if (value.as<std::int64_t>() != nullptr ||
             value.as<double>() != nullptr) {
    append(out, value.shown());
  } else {
    throw Failure{"tojson of what is " + std::string(value.kind())};
  }
}

}  // namespace

namespace {

/// One deeper than the deepest of some values.
/// The depth of a value is kept when it is made, and the limit holds then:
/// printing, comparing and destroying values recurse, and none of them can
/// exhaust the stack.
int depth_around(const Value::List& list) {
  int depth = 0;
  for (const Value& item : list) depth = std::max(depth, item.depth());
  if (depth >= kDeepestValue && Meter::current() != nullptr)
    exceed("lists are nested more than 256 deep");
  return depth + 1;
}

}  // namespace

Value::Text::Text(std::string of)
    : text(std::move(of)), charge(sizeof(Text) + text.size()) {
  if (text.size() > kMostText) exceed("a text exceeds 256 MiB");
  work_on(text);
}

Value::Items::Items(List of)
    : list(std::move(of)),
      depth(depth_around(list)),
      charge(sizeof(Items) + list.capacity() * sizeof(Value)) {
  work(list.size());
}

// A linear search: mappings of templates are small, and their order is that of
// insertion. Long ones cost work that is counted.
std::size_t Value::Map::place_of(std::string_view key) const {
  std::size_t at = 0;
  while (at < members.size() && members[at].first != key) ++at;
  work(at / 16);
  return at;
}

const Value* Value::Map::find(std::string_view key) const {
  const std::size_t at = place_of(key);
  return at == members.size() ? nullptr : &members[at].second;
}

void Value::Map::set(std::string_view key, Value value) {
  const std::size_t at = place_of(key);
  if (at == members.size()) {
    add(key, std::move(value));
  } else {
    deepen(value);
    members[at].second = std::move(value);
  }
}

void Value::Map::add(std::string_view key, Value value) {
  deepen(value);
  charge.add(sizeof(members[0]) + key.size());
  members.emplace_back(key, std::move(value));
}

void Value::Map::deepen(const Value& value) {
  depth = std::max(depth, value.depth() + 1);
  // A few more than of lists: variables and loops are mappings, too.
  if (depth > kDeepestValue + 4 && Meter::current() != nullptr)
    exceed("mappings are nested more than 256 deep");
}

Value Value::list(List items) {
  return std::make_shared<const Items>(std::move(items));
}

int Value::depth() const {
  if (const auto* items = as<std::shared_ptr<const Items>>())
    return (*items)->depth;
  const Map* of = map();
  return of == nullptr || of->is_namespace ? 0 : of->depth;
}

const std::string* Value::text() const {
  const auto* text = as<std::shared_ptr<const Text>>();
  return text == nullptr ? nullptr : &(*text)->text;
}

Value Value::of(const Json& json) {
  if (json.is_null()) return None{};
  if (const bool* flag = std::get_if<bool>(&json.value())) return *flag;
  if (const auto* whole = std::get_if<std::int64_t>(&json.value()))
    return *whole;
  if (json.is_number()) return json.number();
  if (json.is_string()) return json.string();
  if (json.is_array()) {
    List items;
    for (const Json& item : json.array()) items.push_back(of(item));
    return list(std::move(items));
  }
  auto map = std::make_shared<Map>();
  for (const auto& [key, value] : json.object()) map->add(key, of(value));
  return map;
}

const Value::List* Value::items() const {
  const auto* items = as<std::shared_ptr<const Items>>();
  return items == nullptr ? nullptr : &(*items)->list;
}

const Value::Map* Value::map() const {
  const auto* map = as<std::shared_ptr<Map>>();
  return map == nullptr ? nullptr : map->get();
}

Value::Map* Value::map() {
  const auto* map = as<std::shared_ptr<Map>>();
  return map == nullptr ? nullptr : map->get();
}

std::optional<double> Value::number() const {
  if (const bool* flag = as<bool>()) return *flag ? 1 : 0;
  if (const auto* whole = as<std::int64_t>())
    return static_cast<double>(*whole);
  if (const auto* real = as<double>()) return *real;
  return std::nullopt;
}

bool Value::truth() const {
  if (is_undefined() || as<None>() != nullptr) return false;
  if (const auto of = number()) return *of != 0;
  if (const std::string* of = text()) return !of->empty();
  if (const List* list = items()) return !list->empty();
  if (const Map* of = map()) return of->is_namespace || !of->members.empty();
  return true;
}

std::string Value::shown() const {
  if (is_undefined()) return {};
  if (as<None>() != nullptr) return "None";
  if (const bool* flag = as<bool>()) return *flag ? "True" : "False";
  if (const auto* whole = as<std::int64_t>()) return std::to_string(*whole);
  if (const double* real = as<double>()) return shown_number(*real);
  if (const std::string* of = text()) return *of;
  if (as<Callable>() != nullptr) throw Failure{"a function is not text"};
  std::string made;
  write_shown(*this, 0, made);
  return made;
}

std::string Value::json(int indent) const {
  std::string made;
  write_json(*this, indent, 0, made);
  return made;
}

std::string_view Value::kind() const {
  constexpr std::string_view kinds[] = {"undefined", "None",      "a bool",
                                        "an int",    "a float",   "a text",
                                        "a list",    "a mapping", "a function"};
  return kinds[data_.index()];
}

bool Value::same(const Value& a, const Value& b, int depth) {
  check_walk(depth);
  const auto *x = a.as<std::int64_t>(), *y = b.as<std::int64_t>();
  if (x != nullptr && y != nullptr) return *x == *y;  // beyond 2^53, too
  const auto first = a.number(), second = b.number();
  if (first && second) return *first == *second;
  if (a.data_.index() != b.data_.index()) return false;
  if (a.text() != nullptr) {
    work_on(*a.text());
    return *a.text() == *b.text();
  }
  auto alike = [depth](const Value& x, const Value& y) {
    return same(x, y, depth + 1);
  };
  if (a.items() != nullptr)
    return std::ranges::equal(*a.items(), *b.items(), alike);
  if (a.map() == nullptr) return a.as<Callable>() == nullptr;
  if (a.map()->members.size() != b.map()->members.size()) return false;
  for (const auto& [key, value] : a.map()->members) {
    const Value* other = b.map()->find(key);
    if (other == nullptr || !alike(value, *other)) return false;
  }
  return true;
}

}  // namespace penstock::chat
