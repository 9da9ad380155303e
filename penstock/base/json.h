#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace penstock {

/// A JSON value for settings and reports (never for data: that is parsed by
/// the transforms). Objects keep the order in which keys were added.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, double,
                             std::string, Array, Object>;

  Json() : value_(nullptr) {}
  Json(std::nullptr_t) : value_(nullptr) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(std::size_t value) : value_(static_cast<std::int64_t>(value)) {}
  /// A double that is not finite becomes null: what was not measured is
  /// unknown.
  Json(double value);
  Json(const char* value);
  Json(std::string_view value);
  Json(std::string value);
  Json(Array value);
  Json(Object value);

  // Compiled once: every file that handles settings would hold them otherwise.
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  /// Throws Error(request) that names `origin`, line and column: for what is
  /// not JSON, a key given twice, a number too large, or more than 200 levels.
  static Json parse(std::string_view text, std::string_view origin);

  /// Compact text, or indented by `indent` spaces.
  std::string dump(int indent = -1) const;

  const Value& value() const { return value_; }
  bool is_null() const {
    return std::holds_alternative<std::nullptr_t>(value_);
  }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_number() const;
  const Array& array() const { return std::get<Array>(value_); }
  const Object& object() const { return std::get<Object>(value_); }
  const std::string& string() const { return std::get<std::string>(value_); }
  std::int64_t integer() const { return std::get<std::int64_t>(value_); }
  /// An integer or a double, as a double.
  double number() const;
  /// "an object", "a number", ...: what an error calls this value.
  std::string_view type_name() const;

  /// The member `key`, or null if none exists. For objects only. Finding
  /// and adding members takes the same time in an object of any size.
  const Json* find(std::string_view key) const;
  /// The member `key`, added when it is missing; a null becomes an object.
  Json& operator[](std::string_view key);
  void push_back(Json value);

  friend bool operator==(const Json&, const Json&);

 private:
  class Places;
  struct FreePlaces {
    void operator()(Places* places) const;
  };

  std::size_t place_of(std::string_view key) const;
  void find_places();

  Value value_;
  std::unique_ptr<Places, FreePlaces>
      places_;  ///< of the members of a large object
};

}  // namespace penstock
