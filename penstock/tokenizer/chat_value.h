#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/tokenizer/chat_limits.h"

namespace penstock::chat {

struct Macro;

/// A value of a chat template: what Python has of it. Lists and mappings are
/// shared, as there.
class Value {
 public:
  struct Undefined {
    std::string name;
  };
  struct None {};
  using List = std::vector<Value>;
  struct Text {
    explicit Text(std::string of);
    const std::string text;
    const Charge charge;
  };
  /// A list, and how deep lists and mappings are in it.
  struct Items {
    explicit Items(List of);
    const List list;
    const int depth;
    const Charge charge;
  };
  struct Map {
    std::vector<std::pair<std::string, Value>> members = {};
    bool is_namespace = false;
    int depth = 1;
    Charge charge = {};

    const Value* find(std::string_view key) const;
    void set(std::string_view key, Value value);
    /// The same for a key that it is known to lack.
    void add(std::string_view key, Value value);

   private:
    std::size_t place_of(std::string_view key) const;
    void deepen(const Value& value);
  };
  /// A part of the template, or the name of a function.
  struct Callable {
    const Macro* macro = nullptr;
    std::string name = {};
  };
  using Data =
      std::variant<Undefined, None, bool, std::int64_t, double,
                   std::shared_ptr<const Text>, std::shared_ptr<const Items>,
                   std::shared_ptr<Map>, Callable>;

  Value() = default;
  template <class T>
  Value(T data) : data_(std::move(data)) {}  // NOLINT: as variants do
  Value(std::string text)                    // NOLINT
      : data_(std::make_shared<const Text>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}  // NOLINT
  static Value of(const Json& json);
  static Value list(List items);

  const Data& data() const { return data_; }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  const std::string* text() const;
  const List* items() const;
  const Map* map() const;
  Map* map();
  bool is_undefined() const { return as<Undefined>() != nullptr; }

  /// 0 of what holds no values. A namespace, which may be changed at any time,
  /// does not count for what holds it.
  int depth() const;
  /// Of a bool or a number.
  std::optional<double> number() const;
  bool truth() const;
  /// What str() of Python gives; nothing where it is not defined.
  std::string shown() const;
  /// What json.dumps() gives, without escapes of what is not ASCII; `indent`
  /// 0: on one line.
  std::string json(int indent) const;
  /// The word of Python for its kind.
  std::string_view kind() const;

  friend bool operator==(const Value& a, const Value& b) {
    return same(a, b, 0);
  }

 private:
  static bool same(const Value& a, const Value& b, int depth);

  Data data_;
};

}  // namespace penstock::chat
