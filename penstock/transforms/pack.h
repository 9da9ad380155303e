#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "penstock/transforms/fields.h"
#include "penstock/transforms/fit.h"

namespace penstock {

/// Writes one raw row as its tensors' bytes: standardised, padded with zeros,
/// rounded once from float64. `out` holds `layout.row_bytes` bytes. Throws
/// Error(transform) when a value does not fit its dtype; `row_name` is asked
/// only then, and shown as it is ("row 42").
void pack_row(const std::vector<Field>& fields, const RowLayout& layout,
              const Fitted& fitted, std::span<const double> raw, std::byte* out,
              const std::function<std::string()>& row_name);

}  // namespace penstock
