#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "penstock/base/json.h"
#include "python/engine/file_text.h"

namespace penstock::python {

/// What json.loads() makes of it; but a text may have any bytes, as the names
/// of classes that are folders have them.
inline nanobind::object object_of(const Json& json) {
  namespace nb = nanobind;
  if (json.is_object()) {
    nb::dict made;
    for (const auto& [key, value] : json.object())
      made[file_text(key)] = object_of(value);
    return made;
  }
  if (json.is_array()) {
    nb::list made;
    for (const Json& value : json.array()) made.append(object_of(value));
    return made;
  }
  if (json.is_string()) return file_text(json.string());
  if (const auto* truth = std::get_if<bool>(&json.value()))
    return nb::bool_(*truth);
  if (const auto* number = std::get_if<std::int64_t>(&json.value()))
    return nb::int_(*number);
  if (json.is_number()) return nb::float_(json.number());
  return nb::none();
}

}  // namespace penstock::python
