#pragma once

#include <cstdint>

#include "penstock/base/block.h"

namespace penstock::python {

/// Whether a row that is a list holds NULL; it is valid.
inline bool lacks_element(const Column& values, std::int64_t row) {
  if (values.type.kind != ColumnKind::list) return false;
  const Column& elements = values.children[0];
  if (elements.validity.size() == 0) return false;
  for (std::int64_t at = values.offset(row); at < values.offset(row + 1); ++at)
    if (!elements.valid(at)) return true;
  return false;
}

}  // namespace penstock::python
