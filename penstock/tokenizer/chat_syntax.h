#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/tokenizer/chat_value.h"

namespace penstock::chat {

/// What is computed.
struct Expression {
  enum class Kind {
    constant,  ///< `value`
    name,      ///< `text`
    list,      ///< of `parts`
    map,       ///< keys and values by turns
    member,    ///< of parts[0], by `text`
    item,      ///< of parts[0], by parts[1]
    slice,     ///< of parts[0]: begin, end, step, each may be null
    call,      ///< parts[0] with the others
    method,    ///< `text` of parts[0] with the others
    filter,    ///< the same
    test,      ///< the same; true or false
    negative,  ///< -parts[0]
    negation,  ///< not parts[0]
    both,      ///< and
    either,    ///< or
    choice,    ///< parts[0] if parts[1] else parts[2], which may be null
    binary,    ///< `text`: an operator
  };
  Kind kind;
  std::string text = {};
  Value value = {};
  std::vector<std::unique_ptr<Expression>> parts = {};
  /// Of calls: the names of the last of `parts`.
  std::vector<std::string> names = {};
  /// How many expressions are in each other, this one included.
  int depth = 1;
};
using ExpressionPtr = std::unique_ptr<Expression>;

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

/// What is done.
struct Statement {
  enum class Kind {
    text,         ///< writes `text`
    output,       ///< writes what `of` is
    branch,       ///< body if `of`, else `otherwise`
    loop,         ///< body for `names` in `of`, where `only`; else `otherwise`
    assign,       ///< `names` = of; names[1] is a member of a namespace
    assign_body,  ///< names[0] = what the body writes
    define,       ///< a macro
    generation,   ///< the body is what the model is to write
    leave,        ///< break
    again,        ///< continue
  };
  Kind kind;
  std::string text = {};
  std::vector<std::string> names = {};
  bool member = false;  ///< of assign
  ExpressionPtr of = {}, only = {};
  Block body = {}, otherwise = {};
  std::unique_ptr<Macro> macro = {};
};

struct Macro {
  std::string name = {};
  std::vector<std::string> parameters = {};
  std::vector<ExpressionPtr> defaults = {};  ///< of the last ones
  Block body = {};
};

/// Reads a template as jinja2 does with trim_blocks and lstrip_blocks, and the
/// extensions for loops and for generation. Throws Failure, which names what is
/// not known.
Block read_template(std::string_view text);

/// Whether these are names that functions.cpp knows.
bool is_filter(std::string_view name);
bool is_test(std::string_view name);
bool is_method(std::string_view name);

}  // namespace penstock::chat
