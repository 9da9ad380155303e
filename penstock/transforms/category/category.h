#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// A column of texts, whole numbers or booleans -> the int64 class of each row,
/// [].
struct Category {
  std::string column;
  std::int64_t min_count = 1;  ///< train rows, of a class of its own
  /// What is no class, or missing, is class 0, and classes begin at 1. Else
  /// such a row is bad, and classes begin at 0.
  bool unknown_is_class = true;
  bool by_frequency = false;  ///< the most frequent first; else sorted
  /// Instead of the class a row of so many float32, 1 in its class's place and
  /// 0 elsewhere; 0: the class.
  std::int64_t one_hot = 0;
};

/// The kind `category`. Its classes are the values of the train rows: texts
/// sorted by UTF-8 bytes, integers as numbers, false before true; of equally
/// frequent ones the first so sorted. They are the statistics of the field:
/// {"classes": [...], "counts": [...], "unknown": train rows of class 0,
/// "missing": rows without a value}. What is stored is the tensor NAME, int64,
/// of shape [], or float32 [one_hot].
std::shared_ptr<const FieldKind> make_category(std::string name,
                                               Category category);

/// The settings of a field of this kind; null for another kind's.
const Category* category_of(const Field& field);

}  // namespace penstock
