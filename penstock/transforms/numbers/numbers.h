#pragma once

#include <memory>
#include <string>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/numbers/number_options.h"

namespace penstock {

/// The kinds `columns` and `column`. A row's values are one number per column,
/// each in the width that the source gives it; hashes and statistics see them
/// as float64 (dtypes of integers: the integer's bits). Negative zero is zero;
/// booleans are 0 and 1. What is stored is the tensor NAME of the dtype,
/// [columns], and with a mask the tensor NAME_mask of float32, of the same
/// shape: 1 where a value is present, else 0.
std::shared_ptr<const FieldKind> make_numbers(std::string name,
                                              Numbers numbers);

}  // namespace penstock
