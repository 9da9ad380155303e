// What filters, tests, methods and operators of templates do, as in Python.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "penstock/tokenizer/character_sets.h"
#include "penstock/tokenizer/chat_run.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock::chat {
namespace {

constexpr std::string_view kFilters[] = {
    "trim",    "tojson",  "length",     "count",      "default",    "d",
    "upper",   "lower",   "capitalize", "safe",       "items",      "dictsort",
    "replace", "join",    "first",      "last",       "list",       "string",
    "int",     "reverse", "map",        "selectattr", "rejectattr", "select",
    "reject",  "abs"};
constexpr std::string_view kTests[] = {
    "defined",  "undefined", "none",    "string",  "mapping",
    "iterable", "sequence",  "boolean", "true",    "false",
    "number",   "integer",   "float",   "equalto", "eq",
    "ne",       "in",        "odd",     "even",    "callable"};
constexpr std::string_view kMethods[] = {
    "startswith", "endswith", "strip",   "lstrip",     "rstrip", "split",
    "upper",      "lower",    "replace", "capitalize", "join",   "get",
    "items",      "keys",     "values",  "find"};

bool is_one_of(std::string_view name, std::span<const std::string_view> of) {
  return std::ranges::find(of, name) != of.end();
}

const std::string& text_of(const Value& of, const std::string& what) {
  if (of.text() == nullptr) refuse(what, of);
  return *of.text();
}

/// str.isspace() of Python.
bool is_space(std::uint32_t code) {
  return unicode::classes()[code] == unicode::kSpace ||
         (code >= 0x1C && code <= 0x1F);
}

/// Takes characters away from the ends: white space, or those of `these`.
std::string stripped(std::string_view text, const Value* these, bool left,
                     bool right) {
  std::vector<std::uint32_t> set;
  std::uint32_t size;
  const bool given = these != nullptr && these->text() != nullptr;
  if (given)
    for (std::size_t at = 0; at < these->text()->size(); at += size)
      set.push_back(unicode::code_at(these->text()->data() + at, size));
  auto goes = [&](std::uint32_t code) {
    work(1 + set.size());
    return given ? std::ranges::find(set, code) != set.end() : is_space(code);
  };
  while (left && !text.empty() && goes(unicode::code_at(text.data(), size)))
    text.remove_prefix(size);
  while (right && !text.empty()) {
    std::size_t at = text.size() - 1;
    while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!goes(unicode::code_at(text.data() + at, size))) break;
    text.remove_suffix(size);
  }
  return std::string(text);
}

std::string upper(std::string text) {
  work_on(text);
  for (char& c : text) {
    if (c < 0) throw Failure{"upper case of what is not ASCII"};
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return text;
}

/// But for what depends on what stands beside it.
std::string lower(const std::string& text) {
  work(1 + text.size());
  std::string made;
  std::uint32_t size;
  for (std::size_t at = 0; at < text.size(); at += size) {
    const std::uint32_t code = unicode::code_at(text.data() + at, size);
    if (code == 0x130 || code == 0x3A3)
      throw Failure{"lower case of '" + text.substr(at, size) + "'"};
    unicode::append(unicode::lowered(code), made);
  }
  return made;
}

std::string capitalized(const std::string& text) {
  const std::string made = lower(text);
  return made.empty() ? made : upper(made.substr(0, 1)) + made.substr(1);
}

std::string replaced(const std::string& text, const Arguments& with) {
  const Value *old = with.get(0, "s"), *to = with.get(1, "new");
  if (old == nullptr || to == nullptr || with.values.size() > 2)
    throw Failure{"replace with other than two texts"};
  const std::string what = text_of(*old, "replace"),
                    by = text_of(*to, "replace");
  if (what.empty()) throw Failure{"replace of an empty text"};
  std::string made;
  std::size_t done = 0;
  for (std::size_t at; (at = find_text(text, what, done)) != text.npos;
       done = at + what.size()) {
    append(made, std::string_view(text).substr(done, at - done));
    append(made, by);
  }
  append(made, std::string_view(text).substr(done));
  return made;
}

Value split(const std::string& text, const Arguments& with) {
  const Value* by = with.get(0, "sep");
  const Value* most = with.get(1, "maxsplit");
  std::int64_t left = -1;
  if (most != nullptr && most->as<std::int64_t>() != nullptr)
    left = *most->as<std::int64_t>();
  Value::List parts;
  if (by == nullptr || by->text() == nullptr) {
    if (left >= 0) throw Failure{"split() at white space with a limit"};
    std::string rest = stripped(text, nullptr, true, true);
    std::string part;
    std::uint32_t size;
    for (std::size_t at = 0; at < rest.size(); at += size) {
      const bool space = is_space(unicode::code_at(rest.data() + at, size));
      if (!space) part.append(rest, at, size);
      if (space && !part.empty()) add_item(parts, std::exchange(part, {}));
    }
    if (!part.empty()) parts.emplace_back(part);
    return Value::list(std::move(parts));
  }
  const std::string& mark = *by->text();
  if (mark.empty()) throw Failure{"split() at an empty text"};
  std::size_t done = 0;
  for (std::size_t at;
       left != 0 && (at = find_text(text, mark, done)) != text.npos; --left) {
    add_item(parts, text.substr(done, at - done));
    done = at + mark.size();
  }
  parts.emplace_back(text.substr(done));
  return Value::list(std::move(parts));
}

std::int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
}

std::int64_t length(const Value& of) {
  if (of.text() != nullptr) return characters(*of.text());
  if (of.items() != nullptr)
    return static_cast<std::int64_t>(of.items()->size());
  if (of.map() != nullptr)
    return static_cast<std::int64_t>(of.map()->members.size());
  if (of.is_undefined()) return 0;
  refuse("the length", of);
}

Value::List pairs(const Value& of) {
  if (of.is_undefined()) return {};
  if (of.map() == nullptr) refuse("the items", of);
  Value::List all;
  for (const auto& [key, value] : of.map()->members)
    all.push_back(Value::list({key, value}));
  return all;
}

/// By keys, without regard to case.
Value::List sorted_pairs(const Value& of, const Arguments& with) {
  if (!with.values.empty() || !with.named.empty())
    throw Failure{"dictsort with settings"};
  Value::List all = pairs(of);
  auto key = [](const Value& pair) {
    return lower((*pair.items())[0].shown());
  };
  std::ranges::stable_sort(
      all, [&](const Value& a, const Value& b) { return key(a) < key(b); });
  return all;
}

std::string joined(const Value& of, const std::string& by) {
  std::string made;
  bool first = true;
  for (const Value& item : listed(of)) {
    if (!first) append(made, by);
    first = false;
    append(made, item.shown());
  }
  return made;
}

/// select, reject, selectattr, rejectattr.
Value selected(const std::string& name, const Value& of,
               const Arguments& with) {
  const bool by_member = name.ends_with("attr");
  const bool keep = name.starts_with("select");
  std::size_t used = 0;
  std::string member, test;
  if (by_member) {
    if (with.values.empty()) throw Failure{name + " without a name"};
    member = text_of(with.values[used++], name);
  }
  if (used < with.values.size()) test = text_of(with.values[used++], name);
  if (!test.empty() && !is_test(test)) {
    if (test != "==") throw Failure{"the test '" + test + "'"};
    test = "eq";
  }
  Arguments rest;
  rest.values.assign(with.values.begin() + static_cast<std::ptrdiff_t>(used),
                     with.values.end());
  Value::List kept;
  for (const Value& item : listed(of)) {
    const Value looked = by_member ? member_of(item, member) : item;
    const bool holds =
        test.empty() ? looked.truth() : tested(test, looked, rest);
    if (holds == keep) kept.push_back(item);
  }
  return Value::list(std::move(kept));
}

Value mapped(const Value& of, const Arguments& with) {
  Value::List made;
  const Value* member = with.get(SIZE_MAX, "attribute");
  if (member == nullptr && with.values.empty())
    throw Failure{"map without a filter"};
  for (const Value& item : listed(of)) {
    if (member != nullptr) {
      made.push_back(member_of(item, text_of(*member, "map")));
      continue;
    }
    const std::string& name = text_of(with.values[0], "map");
    if (!is_filter(name)) throw Failure{"the filter '" + name + "'"};
    Arguments rest;
    rest.values.assign(with.values.begin() + 1, with.values.end());
    made.push_back(filtered(name, item, rest));
  }
  return Value::list(std::move(made));
}

Value json(const Value& of, const Arguments& with) {
  int indent = 0;
  for (const auto& [name, value] : with.named) {
    if (name == "indent" && value.as<std::int64_t>() != nullptr)
      indent = static_cast<int>(
          std::clamp<std::int64_t>(*value.as<std::int64_t>(), 0, 64));
    else if (name != "indent" && !(name == "ensure_ascii" && !value.truth()))
      throw Failure{"tojson with '" + name + "'"};
  }
  if (!with.values.empty()) throw Failure{"tojson with values"};
  return of.json(indent);
}

Value end_of(const Value& of, bool last) {
  const Value::List all = listed(of);
  if (all.empty()) return Value::Undefined{"an item of nothing"};
  return last ? all.back() : all.front();
}

Value whole(const Value& of) {
  if (const auto* number = of.as<double>()) {
    if (std::isnan(*number)) return std::int64_t{0};
    if (std::fabs(*number) >= 0x1p63) throw Failure{"so large a number"};
    return static_cast<std::int64_t>(*number);
  }
  if (const bool* flag = of.as<bool>()) return std::int64_t{*flag};
  if (const auto* text = of.text()) {
    std::int64_t number = 0;
    const std::string bare = stripped(*text, nullptr, true, true);
    for (std::size_t i = bare.starts_with('-') ? 1 : 0; i < bare.size(); ++i) {
      if (bare[i] < '0' || bare[i] > '9') return std::int64_t{0};
      if (__builtin_mul_overflow(number, 10, &number) ||
          __builtin_add_overflow(number, bare[i] - '0', &number))
        throw Failure{"so large a number"};
    }
    return bare.starts_with('-') ? -number : number;
  }
  return of.as<std::int64_t>() != nullptr ? of : Value(std::int64_t{0});
}

bool is_in(const Value& item, const Value& of) {
  if (const auto* text = of.text())
    return find_text(*text, text_of(item, "'in' a text")) != text->npos;
  if (const auto* map = of.map())
    return item.text() != nullptr && map->find(*item.text()) != nullptr;
  if (const auto* list = of.items())
    return std::ranges::find(*list, item) != list->end();
  if (of.is_undefined()) return false;
  refuse("'in'", of);
}

bool is_less(const Value& a, const Value& b) {
  const auto *x = a.as<std::int64_t>(), *y = b.as<std::int64_t>();
  if (x != nullptr && y != nullptr) return *x < *y;  // beyond 2^53, too
  const auto first = a.number(), second = b.number();
  if (first && second) return *first < *second;
  if (a.text() != nullptr && b.text() != nullptr) return *a.text() < *b.text();
  refuse("a comparison", first || a.text() != nullptr ? b : a);
}

// Python's rules: // rounds down and % has the sign of the divisor, where C++
// rounds towards 0. A division by -1 is apart, because the least int64 divided
// by it overflows. Whole numbers stay whole and must fit; the rest is float64.
Value arithmetic(const std::string& sign, const Value& a, const Value& b) {
  const auto *x = a.as<std::int64_t>(), *y = b.as<std::int64_t>();
  const auto first = a.number(), second = b.number();
  if (!first || !second) refuse("'" + sign + "'", first ? b : a);
  if (x != nullptr && y != nullptr && sign != "/") {
    std::int64_t made = 0;
    bool fails = false;
    if (sign == "+") fails = __builtin_add_overflow(*x, *y, &made);
    if (sign == "-") fails = __builtin_sub_overflow(*x, *y, &made);
    if (sign == "*") fails = __builtin_mul_overflow(*x, *y, &made);
    if (sign == "//" || sign == "%") {
      if (*y == 0 || *y == -1) {
        if (*y == 0) throw Failure{"a division by 0"};
        return sign == "%" ? Value(std::int64_t{0})
                           : arithmetic("-", std::int64_t{0}, a);
      }
      const std::int64_t rest = *x % *y;
      const bool rounds_up = rest != 0 && (rest < 0) != (*y < 0);
      if (sign == "%") return rounds_up ? rest + *y : rest;
      return *x / *y - (rounds_up ? 1 : 0);
    }
    if (fails) throw Failure{"so large a number"};
    return made;
  }
  if (sign == "+") return *first + *second;
  if (sign == "-") return *first - *second;
  if (sign == "*") return *first * *second;
  if (*second == 0) throw Failure{"a division by 0"};
  if (sign == "/") return *first / *second;
  const double down = std::floor(*first / *second);
  return sign == "//" ? down : *first - down * *second;
}

std::string both_texts(std::string a, const std::string& b) {
  append(a, b);
  return a;
}

Value added(const Value& a, const Value& b) {
  if (a.text() != nullptr && b.text() != nullptr)
    return both_texts(*a.text(), *b.text());
  if (a.items() != nullptr && b.items() != nullptr) {
    if (a.items()->size() + b.items()->size() > kMostItems)
      exceed("a list exceeds 2,000,000 items");
    Value::List all = *a.items();
    all.insert(all.end(), b.items()->begin(), b.items()->end());
    return Value::list(std::move(all));
  }
  if (a.text() != nullptr || a.items() != nullptr)
    refuse("'+' to " + std::string(a.kind()), b);
  return arithmetic("+", a, b);
}

}  // namespace

bool is_filter(std::string_view name) { return is_one_of(name, kFilters); }
bool is_test(std::string_view name) { return is_one_of(name, kTests); }
bool is_method(std::string_view name) { return is_one_of(name, kMethods); }

Value filtered(const std::string& name, const Value& of,
               const Arguments& with) {
  if (name == "trim")
    return stripped(of.shown(), with.get(0, "chars"), true, true);
  if (name == "tojson") return json(of, with);
  if (name == "length" || name == "count") return length(of);
  if (name == "default" || name == "d") {
    const Value *otherwise = with.get(0, "default_value"),
                *also_false = with.get(1, "boolean");
    const bool wide = also_false != nullptr && also_false->truth();
    if (!of.is_undefined() && !(wide && !of.truth())) return of;
    return otherwise == nullptr ? Value("") : *otherwise;
  }
  if (name == "upper") return upper(of.shown());
  if (name == "lower") return lower(of.shown());
  if (name == "capitalize") return capitalized(of.shown());
  if (name == "safe") return of;
  if (name == "string") return of.shown();
  if (name == "items") return Value::list(pairs(of));
  if (name == "dictsort") return Value::list(sorted_pairs(of, with));
  if (name == "replace") return replaced(of.shown(), with);
  if (name == "join") {
    const Value* by = with.get(0, "d");
    if (with.get(1, "attribute") != nullptr)
      throw Failure{"join of an attribute"};
    return joined(of, by == nullptr ? "" : by->shown());
  }
  if (name == "first" || name == "last") return end_of(of, name == "last");
  if (name == "list") return Value::list(listed(of));
  if (name == "int") return whole(of);
  if (name == "reverse") {
    const Value back(std::int64_t{-1});
    return slice_of(of, nullptr, nullptr, &back);
  }
  if (name == "map") return mapped(of, with);
  if (name == "abs")
    return is_less(of, std::int64_t{0}) ? combined("-", std::int64_t{0}, of)
                                        : of;
  return selected(name, of, with);
}

bool tested(const std::string& name, const Value& of, const Arguments& with) {
  auto other = [&]() -> const Value& {
    if (with.values.empty())
      throw Failure{"the test '" + name + "' of nothing"};
    return with.values[0];
  };
  const bool* flag = of.as<bool>();
  const auto* number = of.as<std::int64_t>();
  if (name == "defined") return !of.is_undefined();
  if (name == "undefined") return of.is_undefined();
  if (name == "none") return of.as<Value::None>() != nullptr;
  if (name == "string") return of.text() != nullptr;
  if (name == "mapping") return of.map() != nullptr && !of.map()->is_namespace;
  if (name == "iterable")
    return of.text() != nullptr || of.items() != nullptr ||
           (of.map() != nullptr && !of.map()->is_namespace) ||
           of.is_undefined();
  if (name == "sequence")
    return of.text() != nullptr || of.items() != nullptr ||
           of.map() != nullptr || of.is_undefined();
  if (name == "boolean") return flag != nullptr;
  if (name == "true") return flag != nullptr && *flag;
  if (name == "false") return flag != nullptr && !*flag;
  if (name == "number") return of.number().has_value();
  if (name == "integer") return number != nullptr;
  if (name == "float") return of.as<double>() != nullptr;
  if (name == "callable") return of.as<Value::Callable>() != nullptr;
  if (name == "equalto" || name == "eq") return of == other();
  if (name == "ne") return !(of == other());
  if (name == "in") return is_in(of, other());
  if (number == nullptr) refuse("the test '" + name + "'", of);
  return (*number % 2 != 0) == (name == "odd");
}

Value method(const std::string& name, const Value& of, const Arguments& with) {
  if (of.map() != nullptr) {
    if (name == "items") return Value::list(pairs(of));
    if (name == "get") {
      const Value* key = with.get(0, "key");
      const Value* known = key == nullptr || key->text() == nullptr
                               ? nullptr
                               : of.map()->find(*key->text());
      if (known != nullptr) return *known;
      const Value* otherwise = with.get(1, "default");
      return otherwise == nullptr ? Value(Value::None{}) : *otherwise;
    }
    if (name == "keys" || name == "values") {
      Value::List all;
      for (const auto& [key, value] : of.map()->members)
        all.push_back(name == "keys" ? Value(key) : value);
      return Value::list(std::move(all));
    }
  }
  const std::string& text = text_of(of, "'" + name + "()'");
  const Value* first = with.get(0, "");
  if (name == "strip") return stripped(text, first, true, true);
  if (name == "lstrip") return stripped(text, first, true, false);
  if (name == "rstrip") return stripped(text, first, false, true);
  if (name == "split") return split(text, with);
  if (name == "upper") return upper(text);
  if (name == "lower") return lower(text);
  if (name == "capitalize") return capitalized(text);
  if (name == "replace") return replaced(text, with);
  if (first == nullptr) throw Failure{"'" + name + "()' without a value"};
  if (name == "join") return joined(*first, text);
  if (name == "startswith") return text.starts_with(text_of(*first, name));
  if (name == "endswith") return text.ends_with(text_of(*first, name));
  if (name != "find") refuse("'" + name + "()'", of);
  const std::size_t at = find_text(text, text_of(*first, name));
  if (at == text.npos) return std::int64_t{-1};
  return characters(std::string_view(text).substr(0, at));
}

Value combined(const std::string& sign, const Value& a, const Value& b) {
  if (sign == "==") return a == b;
  if (sign == "!=") return !(a == b);
  if (sign == "<") return is_less(a, b);
  if (sign == ">") return is_less(b, a);
  if (sign == "<=") return !is_less(b, a);
  if (sign == ">=") return !is_less(a, b);
  if (sign == "in") return is_in(a, b);
  if (sign == "not in") return !is_in(a, b);
  if (sign == "~") return both_texts(a.shown(), b.shown());
  if (sign == "+") return added(a, b);
  if (sign == "*" && a.text() != nullptr && b.as<std::int64_t>() != nullptr) {
    const std::int64_t times = std::max<std::int64_t>(*b.as<std::int64_t>(), 0);
    if (times > 1'000'000) exceed("a text more than 1,000,000 times");
    std::string made;
    for (std::int64_t i = 0; i < times; ++i) append(made, *a.text());
    return made;
  }
  return arithmetic(sign, a, b);
}

}  // namespace penstock::chat
