#include "penstock/tokenizer/chat_run.h"

#include <optional>

namespace penstock::chat {
namespace {

constexpr std::size_t kMostSteps = 1'000'000;
constexpr int kMostCalls = 100;
/// Of statements and expressions, and those of macros that they call.
constexpr int kMostNestedRun = 1000;

/// The variables of a body; those of what is around it can be read.
/// A loop's body has a scope for each round, so what it assigns is gone in the
/// next one; only a namespace carries values out. An `if` has no scope of its
/// own, and a macro sees the global one, not that of its caller.
struct Scope {
  Value::Map variables = {};
  Scope* around = nullptr;

  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around)
      if (const Value* value = scope->variables.find(name)) return value;
    return nullptr;
  }
};

enum class Then { on, leave, again };

// Values never change once they are shared, but for namespaces. So a cycle goes
// through a namespace, which the destructor empties, and everything else is
// freed by counting. Steps, nesting, held bytes and work are limited: a
// template is code from elsewhere.
class Run {
 public:
  explicit Run(Value::Map variables) {
    global_.variables = std::move(variables);
  }

  // A namespace may hold itself.
  ~Run() {
    for (const auto& space : namespaces_) space->members.clear();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Written run(const Block& block) {
    body(block, global_);
    return std::move(out_);
  }

 private:
  struct Nested {
    explicit Nested(int& count) : count(count) {
      if (++count > kMostNestedRun)
        exceed(
            "statements, expressions and macros are nested more than 1,000 "
            "deep");
    }
    ~Nested() { --count; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    int& count;
  };

  Then body(const Block& block, Scope& scope) {
    for (const auto& statement : block)
      if (Then then = step(*statement, scope); then != Then::on) return then;
    return Then::on;
  }

  Then step(const Statement& of, Scope& scope) {
    using Kind = Statement::Kind;
    const Nested nested(nested_);
    count();
    switch (of.kind) {
      case Kind::text:
        write(of.text);
        break;
      case Kind::output:
        write(value(*of.of, scope).shown());
        break;
      case Kind::branch:
        return body(value(*of.of, scope).truth() ? of.body : of.otherwise,
                    scope);
      case Kind::loop:
        loop(of, scope);
        break;
      case Kind::assign:
        assign(of, scope);
        break;
      case Kind::assign_body:
        assign_body(of, scope);
        break;
      case Kind::define:
        scope.variables.set(of.macro->name,
                            Value::Callable{of.macro.get(), of.macro->name});
        break;
      case Kind::generation: {
        const std::size_t begin = out_.text.size();
        const Then then = body(of.body, scope);
        out_.generated.push_back({begin, out_.text.size()});
        return then;
      }
      case Kind::leave:
        return Then::leave;
      case Kind::again:
        return Then::again;
    }
    return Then::on;
  }

  void count() {
    if (++steps_ > kMostSteps)
      exceed("the template takes more than 1,000,000 steps");
  }

  void write(std::string_view text) {
    append(out_.text, text);
    work_on(text);
    if (written_ + text.size() > kMostText)
      exceed("the rendered chat exceeds 256 MiB");
    written_ += text.size();
  }

  /// What a body writes apart from everything else.
  /// The text of a macro or block is a value that may be written again where it
  /// is used, so its size is taken off `written_`: otherwise it would count
  /// twice.
  std::string written_by(const Block& block, Scope& inner) {
    Written whole = std::move(out_);
    out_ = {};
    body(block, inner);
    std::string text = std::move(out_.text);
    out_ = std::move(whole);
    written_ -= text.size();
    return text;
  }

  void assign_body(const Statement& of, Scope& scope) {
    Scope inner{.around = &scope};
    scope.variables.set(of.names[0], written_by(of.body, inner));
  }

  void assign(const Statement& of, Scope& scope) {
    Value to = value(*of.of, scope);
    if (of.member) {
      const Value* known = scope.find(of.names[0]);
      Value space = known == nullptr ? Value() : *known;
      if (space.map() == nullptr || !space.map()->is_namespace)
        throw Failure{"'" + of.names[0] + "' is not a namespace"};
      space.map()->set(of.names[1], std::move(to));
    } else {
      unpack(of.names, std::move(to), scope);
    }
  }

  static void unpack(const std::vector<std::string>& names, Value of,
                     Scope& scope) {
    if (names.size() == 1) return scope.variables.set(names[0], std::move(of));
    const Value::List items = listed(of);
    if (items.size() != names.size())
      throw Failure{std::to_string(items.size()) + " values for " +
                    std::to_string(names.size()) + " names"};
    for (std::size_t i = 0; i < names.size(); ++i)
      scope.variables.set(names[i], items[i]);
  }

  void loop(const Statement& of, Scope& scope) {
    Value::List items = listed(value(*of.of, scope));
    if (of.only) {
      Value::List kept;
      for (const Value& item : items) {
        count();
        Scope inner{.around = &scope};
        unpack(of.names, item, inner);
        if (value(*of.only, inner).truth()) kept.push_back(item);
      }
      items = std::move(kept);
    }
    if (items.empty()) {
      body(of.otherwise, scope);
      return;
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      count();
      Scope inner{.around = &scope};
      inner.variables.set("loop", place(items, i));
      unpack(of.names, items[i], inner);
      if (body(of.body, inner) == Then::leave) break;
    }
  }

  static Value place(const Value::List& items, std::size_t at) {
    auto loop = std::make_shared<Value::Map>();
    const auto count = static_cast<std::int64_t>(items.size());
    const auto i = static_cast<std::int64_t>(at);
    loop->set("index", i + 1);
    loop->set("index0", i);
    loop->set("first", i == 0);
    loop->set("last", i + 1 == count);
    loop->set("length", count);
    loop->set("revindex", count - i);
    loop->set("revindex0", count - i - 1);
    if (i > 0) loop->set("previtem", items[at - 1]);
    if (i + 1 < count) loop->set("nextitem", items[at + 1]);
    return loop;
  }

  Value value(const Expression& of, Scope& scope) {
    using Kind = Expression::Kind;
    const Nested nested(nested_);
    count();
    auto part = [&](std::size_t i) { return value(*of.parts[i], scope); };
    switch (of.kind) {
      case Kind::constant:
        return of.value;
      case Kind::name: {
        if (const Value* known = scope.find(of.text)) return *known;
        if (is_function(of.text)) return Value::Callable{nullptr, of.text};
        return Value::Undefined{of.text};
      }
      case Kind::list: {
        Value::List items;
        for (std::size_t i = 0; i < of.parts.size(); ++i)
          items.push_back(part(i));
        return Value::list(std::move(items));
      }
      case Kind::map:
        return map(of, scope);
      case Kind::member:
        return member_of(part(0), of.text);
      case Kind::item:
        return item_of(part(0), part(1));
      case Kind::slice:
        return slice(of, scope);
      case Kind::call:
        return call(part(0), arguments(of, scope));
      case Kind::method:
        return called(of, scope);
      case Kind::filter:
        return filtered(of.text, part(0), arguments(of, scope));
      case Kind::test:
        return tested(of.text, part(0), arguments(of, scope));
      case Kind::negative:
        return combined("-", std::int64_t{0}, part(0));
      case Kind::negation:
        return !part(0).truth();
      case Kind::both: {
        Value first = part(0);
        return first.truth() ? part(1) : first;
      }
      case Kind::either: {
        Value first = part(0);
        return first.truth() ? first : part(1);
      }
      case Kind::choice:
        if (part(1).truth()) return part(0);
        return of.parts[2] ? part(2) : Value();
      case Kind::binary:
        return combined(of.text, part(0), part(1));
    }
    return {};
  }

  Value map(const Expression& of, Scope& scope) {
    auto made = std::make_shared<Value::Map>();
    for (std::size_t i = 0; i + 1 < of.parts.size(); i += 2) {
      const Value key = value(*of.parts[i], scope);
      if (key.text() == nullptr)
        throw Failure{"a key that is " + std::string(key.kind())};
      made->set(*key.text(), value(*of.parts[i + 1], scope));
    }
    return made;
  }

  Value slice(const Expression& of, Scope& scope) {
    std::optional<Value> bounds[3];
    for (std::size_t i = 0; i < 3; ++i)
      if (of.parts[i + 1]) bounds[i] = value(*of.parts[i + 1], scope);
    auto given = [&](int i) { return bounds[i] ? &*bounds[i] : nullptr; };
    return slice_of(value(*of.parts[0], scope), given(0), given(1), given(2));
  }

  Arguments arguments(const Expression& of, Scope& scope) {
    Arguments made;
    const std::size_t placed = of.parts.size() - of.names.size();
    for (std::size_t i = 1; i < of.parts.size(); ++i) {
      Value one = value(*of.parts[i], scope);
      if (i < placed)
        made.values.push_back(std::move(one));
      else
        made.named.emplace_back(of.names[i - placed], std::move(one));
    }
    return made;
  }

  Value called(const Expression& of, Scope& scope) {
    const Value object = value(*of.parts[0], scope);
    return method(of.text, object, arguments(of, scope));
  }

  static bool is_function(std::string_view name) {
    return name == "namespace" || name == "range" || name == "dict" ||
           name == "raise_exception";
  }

  Value call(const Value& function, const Arguments& with) {
    const auto* callable = function.as<Value::Callable>();
    if (callable == nullptr) {
      const auto* missing = function.as<Value::Undefined>();
      throw Failure{missing != nullptr
                        ? "the function '" + missing->name + "' is not defined"
                        : std::string(function.kind()) + " is not a function"};
    }
    if (callable->macro != nullptr) return expanded(*callable->macro, with);
    if (callable->name == "raise_exception")
      throw Failure{"the template raised: " +
                    (with.values.empty() ? "" : with.values[0].shown())};
    if (callable->name == "range") return range(with);
    auto made = std::make_shared<Value::Map>();
    made->is_namespace = callable->name == "namespace";
    if (made->is_namespace) {
      made->charge.add(sizeof(Value::Map));
      namespaces_.push_back(made);
    }
    for (const auto& [name, value] : with.named) made->set(name, value);
    return made;
  }

  static Value range(const Arguments& with) {
    std::int64_t bounds[3] = {0, 0, 1};
    for (std::size_t i = 0; i < with.values.size() && i < 3; ++i) {
      const auto* whole = with.values[i].as<std::int64_t>();
      if (whole == nullptr)
        throw Failure{"range() of a value that is not an int"};
      bounds[with.values.size() == 1 ? 1 : i] = *whole;
    }
    const auto [begin, end, step] = bounds;
    if (step == 0) throw Failure{"range() in steps of 0"};
    Value::List items;
    for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
      if (items.size() > 1'000'000)
        exceed("range() of more than 1,000,000 numbers");
      items.emplace_back(i);
      if (__builtin_add_overflow(i, step, &i)) break;  // beyond any end
    }
    return Value::list(std::move(items));
  }

  Value expanded(const Macro& macro, const Arguments& with) {
    if (++calls_ > kMostCalls)
      exceed("macros call each other more than 100 deep");
    if (with.values.size() > macro.parameters.size())
      throw Failure{"too many values for the macro '" + macro.name + "'"};
    Scope inner{.around = &global_};
    const std::size_t required =
        macro.parameters.size() - macro.defaults.size();
    for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
      const std::string& name = macro.parameters[i];
      if (const Value* given = with.get(i, name))
        inner.variables.set(name, *given);
      else if (i >= required)
        inner.variables.set(name, value(*macro.defaults[i - required], inner));
      else
        inner.variables.set(name, Value::Undefined{name});
    }
    std::string text = written_by(macro.body, inner);
    --calls_;
    return text;
  }

  Scope global_;
  Written out_;
  std::size_t steps_ = 0, written_ = 0;
  int calls_ = 0, nested_ = 0;
  std::vector<std::shared_ptr<Value::Map>> namespaces_;
};

}  // namespace

const Value* Arguments::get(std::size_t place, std::string_view name) const {
  if (place < values.size()) return &values[place];
  for (const auto& [known, value] : named)
    if (known == name) return &value;
  return nullptr;
}

Written apply(const Block& block, Value::Map variables) {
  const Meter meter;
  return Run(std::move(variables)).run(block);
}

}  // namespace penstock::chat
