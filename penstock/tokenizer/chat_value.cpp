#include "penstock/tokenizer/chat_value.h"

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

std::string repr(const Value& value) {
  return value.text() != nullptr ? quoted(*value.text()) : value.shown();
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
  auto line = [&](int deep) {
    if (indent > 0) {
      out += '\n';
      out.append(static_cast<std::size_t>(indent * deep), ' ');
    }
  };
  const char* comma = indent > 0 ? "," : ", ";
  if (const auto* list = value.items()) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i > 0) out += comma;
      line(depth + 1);
      write_json((*list)[i], indent, depth + 1, out);
    }
    if (!list->empty()) line(depth);
    out += ']';
  } else if (const auto* map = value.map()) {
    out += '{';
    for (std::size_t i = 0; i < map->members.size(); ++i) {
      if (i > 0) out += comma;
      line(depth + 1);
      out += json_text(map->members[i].first) + ": ";
      write_json(map->members[i].second, indent, depth + 1, out);
    }
    if (!map->members.empty()) line(depth);
    out += '}';
  } else if (value.text() != nullptr) {
    out += json_text(*value.text());
  } else if (const bool* flag = value.as<bool>()) {
    out += *flag ? "true" : "false";
  } else if (value.as<Value::None>() != nullptr) {
    out += "null";
  } else if (value.as<std::int64_t>() != nullptr ||
             value.as<double>() != nullptr) {
    out += value.shown();
  } else {
    throw Failure{"tojson of what is " + std::string(value.kind())};
  }
}

}  // namespace

const Value* Value::Map::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

void Value::Map::set(std::string_view key, Value value) {
  for (auto& [name, old] : members) {
    if (name != key) continue;
    old = std::move(value);
    return;
  }
  members.emplace_back(key, std::move(value));
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
  for (const auto& [key, value] : json.object())
    map->members.emplace_back(key, of(value));
  return map;
}

const Value::List* Value::items() const {
  const auto* list = as<std::shared_ptr<List>>();
  return list == nullptr ? nullptr : list->get();
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
  std::string made;
  if (const List* list = items()) {
    for (const Value& item : *list)
      made += (made.empty() ? "" : ", ") + repr(item);
    return "[" + made + "]";
  }
  if (const Map* of = map()) {
    for (const auto& [key, value] : of->members)
      made += (made.empty() ? "" : ", ") + quoted(key) + ": " + repr(value);
    return "{" + made + "}";
  }
  throw Failure{"a function is not text"};
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

bool operator==(const Value& a, const Value& b) {
  const auto first = a.number(), second = b.number();
  if (first && second) return *first == *second;
  if (a.data_.index() != b.data_.index()) return false;
  if (a.text() != nullptr) return *a.text() == *b.text();
  if (a.items() != nullptr) return *a.items() == *b.items();
  if (a.map() == nullptr) return a.as<Value::Callable>() == nullptr;
  if (a.map()->members.size() != b.map()->members.size()) return false;
  for (const auto& [key, value] : a.map()->members) {
    const Value* other = b.map()->find(key);
    if (other == nullptr || !(value == *other)) return false;
  }
  return true;
}

}  // namespace penstock::chat
