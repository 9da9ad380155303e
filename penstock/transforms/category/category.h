#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/transforms/field_kind.h"

namespace penstock {

/// A column of texts, whole numbers or booleans -> the int64 class of each row,
/// [].
struct Category {
  std::string column;
  std::int64_t min_count = 1;  ///< train rows, of a class of its own
  /// A value that is not a class, or is missing, is the last class, behind
  /// those that are known. Else such a row is bad.
  bool unknown_is_class = true;
  bool by_frequency = false;  ///< the most frequent first; else sorted
  /// Instead of the class a row of so many float32, 1 in its class's place and
  /// 0 elsewhere; 0: the class.
  std::int64_t one_hot = 0;
};

/// The kind `category`. Its classes are the values of the train rows, numbered
/// from 0: texts sorted by UTF-8 bytes, integers as numbers, false before true;
/// of equally frequent ones the first so sorted. They are the statistics of the
/// field: {"classes": [...], "counts": [...], "unknown": train rows of the
/// unknown class, "missing": rows without a value, "unknown_elsewhere": rows of
/// the unknown class outside the train side}; the last where there is such a
/// class. What is stored is the tensor NAME, int64, of shape [], or float32
/// [one_hot].
std::shared_ptr<const FieldKind> make_category(std::string name,
                                               Category category);

/// What each class of a `category` or place of a `multi_hot` field stands for,
/// by its number, as the field's statistics have it. Null is the last one of a
/// category that has an unknown class. Empty for a field of another kind.
std::vector<Json> class_names(const Field& field, const Json& statistics);

}  // namespace penstock
