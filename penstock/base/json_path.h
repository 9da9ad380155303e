#pragma once

#include <initializer_list>
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

}  // namespace penstock
