#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// A checked reading of one JSON object of settings.
///
/// Each getter checks type and range and remembers the key; `finish()` then
/// refuses unknown keys and names the nearest known one.
/// All errors are Error(request) with the JSON path. Borrows the Json.
///
///     Spec spec(json, "loader");
///     options.batch_size = spec.integer("batch_size", 256, 1, 1 << 20);
///     spec.finish();
class Spec {
 public:
  Spec(const Json& object, std::string path);

  bool has(std::string_view key) const;
  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string_view otherwise);
  std::int64_t integer(std::string_view key,
                       std::optional<std::int64_t> otherwise, std::int64_t min,
                       std::int64_t max);
  double number(std::string_view key, std::optional<double> otherwise,
                double min, double max);
  bool boolean(std::string_view key, bool otherwise);
  /// One of `allowed`; the error lists them.
  std::string choice(std::string_view key, std::string_view otherwise,
                     std::initializer_list<std::string_view> allowed);
  /// The same without a default: it must be there.
  std::string choice(std::string_view key,
                     const std::vector<std::string>& allowed);
  std::vector<std::string> texts(std::string_view key);
  /// At least one text, none of them twice.
  std::vector<std::string> names(std::string_view key);
  /// The member unchanged, or null; the caller checks it.
  const Json* raw(std::string_view key);
  /// The member as an object to be checked in turn; must be there.
  Spec section(std::string_view key);
  /// Throws for a key that this version does not know.
  void finish() const;

  const std::string& path() const { return path_; }
  std::string path_of(std::string_view key) const;
  const std::vector<std::string>& known() const { return known_; }

  /// Error(request) at `key`: "batch_size: found "x", expected an integer;
  /// write a number".
  [[noreturn]] void refuse(std::string_view key, std::string why,
                           std::string next) const;

 private:
  const Json* look_up(std::string_view key);

  const Json* object_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace penstock
