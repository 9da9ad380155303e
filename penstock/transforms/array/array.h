#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// A column of lists of numbers, of tensors, or of bytes that are numbers.
struct Arrays {
  std::string column;
  /// Of a row; where rows differ in length of one element.
  std::vector<std::int64_t> shape;
  Lengths lengths = Lengths::equal;
  Dtype dtype = Dtype::float32;
  std::optional<Dtype> of;     ///< of a column of bytes: what they are
  bool null_is_empty = false;  ///< where rows differ in length; else it is bad
};

/// The kind `array`. A row's numbers, in C order, become the tensor NAME of
/// `dtype`: [shape...] each, or, where rows differ in length, [longest,
/// shape...] padded with zeros beside NAME_lengths, or one after the other
/// beside NAME_cu_seqlens. Bytes are little-endian. A row is bad whose numbers
/// are NULL, not finite, not of that count, or do not fit the dtype; an
/// infinity or a fraction fits no integer. Negative zero is zero.
std::shared_ptr<const FieldKind> make_array(std::string name, Arrays array);

}  // namespace penstock
