#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// A column of lists of labels -> float32 [size] of each row, 1 in the places
/// of its labels and 0 elsewhere.
struct MultiHot {
  std::string column;
  std::int64_t size = 0;  ///< places; as many labels at most
  std::string separator;  ///< between labels; empty: lists as JSON has them
  std::int64_t min_count = 1;   ///< train rows, of a label that has a place
  bool unknown_is_bad = false;  ///< else what has no place is left out
};

/// The kind `multi_hot`. Its labels are those of the train rows, sorted by
/// UTF-8 bytes; they are the statistics of the field: {"classes": [...],
/// "counts": [...], "rows": train rows, "unknown": labels of train rows that
/// have no place}. What is stored is the tensor NAME, float32 [size].
std::shared_ptr<const FieldKind> make_multi_hot(std::string name,
                                                MultiHot settings);

}  // namespace penstock
