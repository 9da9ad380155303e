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
  struct Map {
    std::vector<std::pair<std::string, Value>> members = {};
    bool is_namespace = false;

    const Value* find(std::string_view key) const;
    void set(std::string_view key, Value value);
  };
  /// A part of the template, or the name of a function.
  struct Callable {
    const Macro* macro = nullptr;
    std::string name = {};
  };
  using Data =
      std::variant<Undefined, None, bool, std::int64_t, double, std::string,
                   std::shared_ptr<List>, std::shared_ptr<Map>, Callable>;

  Value() = default;
  template <class T>
  Value(T data) : data_(std::move(data)) {}  // NOLINT: as variants do
  Value(const char* text) : data_(std::string(text)) {}  // NOLINT
  static Value of(const Json& json);
  static Value list(List items) {
    return std::make_shared<List>(std::move(items));
  }

  const Data& data() const { return data_; }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  const std::string* text() const { return as<std::string>(); }
  const List* items() const;
  const Map* map() const;
  Map* map();
  bool is_undefined() const { return as<Undefined>() != nullptr; }

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

  friend bool operator==(const Value& a, const Value& b);

 private:
  Data data_;
};

/// What goes wrong while a template is read or applied.
struct Failure {
  std::string why;
};

}  // namespace penstock::chat
