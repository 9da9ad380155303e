#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/base/json.h"

namespace penstock {

/// A value below `json` by its keys; null where it is not there.
inline const Json* found_in(const Json& json,
                            std::initializer_list<std::string_view> keys) {
  const Json* found = &json;
  for (std::string_view key : keys) {
    if (!found->is_object()) return nullptr;
    found = found->find(key);
    if (found == nullptr) return nullptr;
  }
  return found;
}

/// nullopt where there is no number.
inline std::optional<double> number_in(
    const Json& json, std::initializer_list<std::string_view> keys) {
  const Json* found = found_in(json, keys);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->number();
}

/// Empty where there is no text.
inline std::string text_in(const Json& json,
                           std::initializer_list<std::string_view> keys) {
  const Json* found = found_in(json, keys);
  return found != nullptr && found->is_string() ? found->string() : "";
}

/// Empty where there is no list.
inline const Json::Array& list_in(
    const Json& json, std::initializer_list<std::string_view> keys) {
  static const Json::Array kNone;
  const Json* found = found_in(json, keys);
  return found != nullptr && found->is_array() ? found->array() : kNone;
}

}  // namespace penstock
