// Parts of values: members, items, slices, and what a loop goes over.
#include <algorithm>
#include <optional>

#include "penstock/tokenizer/chat_run.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock::chat {
namespace {

/// The characters of a text, by their places.
class Characters {
 public:
  explicit Characters(std::string_view text) : text_(text) {
    work(1 + text.size());
    std::uint32_t size;
    for (std::size_t at = 0; at < text.size(); at += size) {
      begins_.push_back(static_cast<std::uint32_t>(at));
      unicode::code_at(text.data() + at, size);
    }
  }
  std::size_t size() const { return begins_.size(); }
  std::string_view operator[](std::size_t at) const {
    const std::size_t end = at + 1 < size() ? begins_[at + 1] : text_.size();
    return text_.substr(begins_[at], end - begins_[at]);
  }

 private:
  std::string_view text_;
  std::vector<std::uint32_t> begins_;
};

}  // namespace

void refuse(const std::string& what, const Value& of) {
  throw Failure{
      what + " does not apply to " +
      (of.as<Value::Undefined>() != nullptr
           ? "the undefined value '" + of.as<Value::Undefined>()->name + "'"
           : std::string(of.kind()))};
}

void add_item(Value::List& to, Value item) {
  if (to.size() == kMostItems) exceed("a list exceeds 2,000,000 items");
  to.push_back(std::move(item));
}

Value member_of(const Value& of, const std::string& name) {
  if (of.is_undefined()) refuse("'." + name + "'", of);
  if (const auto* map = of.map())
    if (const Value* known = map->find(name)) return *known;
  return Value::Undefined{name};
}

Value item_of(const Value& of, const Value& index) {
  if (index.text() != nullptr) return member_of(of, *index.text());
  if (of.is_undefined()) refuse("an item", of);
  const auto* number = index.as<std::int64_t>();
  if (number == nullptr) return Value::Undefined{"an item"};
  std::optional<Characters> letters;
  if (of.text() != nullptr) letters.emplace(*of.text());
  const std::size_t size = letters                 ? letters->size()
                           : of.items() != nullptr ? of.items()->size()
                                                   : 0;
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t at = *number < 0 ? *number + count : *number;
  if (at < 0 || at >= count)
    return Value::Undefined{"item " + std::to_string(*number)};
  const auto place = static_cast<std::size_t>(at);
  if (letters) return std::string((*letters)[place]);
  return (*of.items())[place];
}

Value slice_of(const Value& of, const Value* begin, const Value* end,
               const Value* step) {
  if (of.items() == nullptr && of.text() == nullptr) refuse("a slice", of);
  std::optional<Characters> letters;
  if (of.text() != nullptr) letters.emplace(*of.text());
  const auto count =
      static_cast<std::int64_t>(letters ? letters->size() : of.items()->size());
  auto given = [](const Value* bound, std::int64_t otherwise) {
    if (bound == nullptr || bound->as<Value::None>() != nullptr)
      return otherwise;
    const auto* number = bound->as<std::int64_t>();
    if (number == nullptr)
      throw Failure{"a slice by a value that is not an int"};
    return *number;
  };
  const std::int64_t by = given(step, 1);
  if (by == 0) throw Failure{"a slice in steps of 0"};
  auto placed = [&](const Value* bound, std::int64_t otherwise) {
    if (bound == nullptr || bound->as<Value::None>() != nullptr)
      return otherwise;
    std::int64_t at = given(bound, 0);
    if (at < 0) at += count;
    return std::clamp<std::int64_t>(at, by > 0 ? 0 : -1,
                                    by > 0 ? count : count - 1);
  };
  const std::int64_t from = placed(begin, by > 0 ? 0 : count - 1);
  const std::int64_t to = placed(end, by > 0 ? count : -1);
  Value::List kept;
  std::string text;
  for (std::int64_t i = from; by > 0 ? i < to : i > to;) {
    const auto at = static_cast<std::size_t>(i);
    if (letters)
      text += (*letters)[at];
    else
      kept.push_back((*of.items())[at]);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (letters) return text;
  return Value::list(std::move(kept));
}

Value::List listed(const Value& of) {
  if (of.items() != nullptr) {
    work(of.items()->size());
    return *of.items();
  }
  Value::List all;
  if (of.map() != nullptr) {
    work(of.map()->members.size());
    for (const auto& [key, value] : of.map()->members) all.emplace_back(key);
  } else if (of.text() != nullptr) {
    std::uint32_t size;
    for (std::size_t at = 0; at < of.text()->size(); at += size) {
      unicode::code_at(of.text()->data() + at, size);
      add_item(all, of.text()->substr(at, size));
    }
  } else if (!of.is_undefined()) {
    refuse("a loop", of);
  }
  return all;
}

}  // namespace penstock::chat
