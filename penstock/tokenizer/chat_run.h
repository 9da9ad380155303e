#pragma once

#include <map>
#include <string>
#include <vector>

#include "penstock/tokenizer/aligned.h"
#include "penstock/tokenizer/chat_syntax.h"

namespace penstock::chat {

/// What a template wrote, and which parts of it a model is to write, where the
/// template marks them.
struct Written {
  std::string text;
  std::vector<ByteRange> generated;
};

/// Values that a call was given.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;

  /// By place or by name, or null.
  const Value* get(std::size_t place, std::string_view name) const;
};

/// Throw Failure.
Value filtered(const std::string& name, const Value& of, const Arguments& with);
bool tested(const std::string& name, const Value& of, const Arguments& with);
Value method(const std::string& name, const Value& of, const Arguments& with);
Value combined(const std::string& sign, const Value& a, const Value& b);
Value member_of(const Value& of, const std::string& name);
Value item_of(const Value& of, const Value& index);
Value slice_of(const Value& of, const Value* begin, const Value* end,
               const Value* step);
/// What a loop goes over.
Value::List listed(const Value& of);
/// Adds to a list, within the limit of its length.
void add_item(Value::List& to, Value item);
/// Says that `what` cannot be done with a value.
[[noreturn]] void refuse(const std::string& what, const Value& of);

/// Applies a template to variables. Throws Failure; also for what takes too
/// long or becomes too long.
Written apply(const Block& block, Value::Map variables);

}  // namespace penstock::chat
