#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// Columns of the table, one number each -> [columns].
struct Numbers {
  std::vector<std::string> columns;
  Dtype dtype = Dtype::float32;  ///< float32, float64 or int64
  bool standardize = false;
};

/// The kind `columns`. A row's values are one number per column, each in the
/// width that the source gives it; hashes and statistics see them as float64
/// (dtype int64: the integer's bits). Negative zero is zero; booleans are 0
/// and 1. What is stored is the tensor NAME of the dtype, [columns].
std::shared_ptr<const FieldKind> make_numbers(std::string name,
                                              Numbers numbers);

/// The settings of a field of this kind; null for another kind's.
const Numbers* numbers_of(const Field& field);

}  // namespace penstock
