#pragma once

#include <span>
#include <vector>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/numbers/number_row.h"
#include "penstock/transforms/standardization.h"

namespace penstock {

/// Writes what NumberEncoder makes of parsed rows, column by column, as float32
/// or float64; of rows without a mask, exact integers and maths. False: a
/// number does not fit, and is to be looked for.
bool encode_columns(std::span<const ValueRow> rows, const NumberRow& format,
                    const std::vector<Standardization>& by, Dtype made,
                    const StoredRows& out);

}  // namespace penstock
