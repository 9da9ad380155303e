#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/transforms/augment/augment.h"
#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/missing_value.h"

namespace penstock {

/// A column of lists of numbers, of tensors, or of bytes that are numbers.
struct Arrays {
  std::string column;
  /// Of a row; where rows differ in length of one element.
  std::vector<std::int64_t> shape;
  Lengths lengths = Lengths::equal;
  Dtype dtype = Dtype::float32;
  std::optional<Dtype> of;    ///< of a column of bytes: what they are
  MissingValue missing = {};  ///< of a row that is NULL
  bool finite = true;         ///< a row with NaN or an infinity is bad
  /// Above 0: the column is one long array, and rows are windows of it, every
  /// `stride` of its elements, which have `shape`.
  std::int64_t window = 0, stride = 0;
  /// What stands beside rows that differ in length: NAME_lengths or
  /// NAME_cu_seqlens; or the tensors that `ragged` names.
  enum class Ragged : std::uint8_t { none, pad, offsets };
  Ragged ragged = Ragged::none;
  std::vector<Augmentation> augment = {};  ///< of float32 rows of equal length

  /// Of a row in a batch.
  Shape row_shape() const {
    Shape row(shape.begin(), shape.end());
    if (window > 0) row.insert(row.begin(), window);
    return row;
  }
};

/// The kind `array`. A row's numbers, in C order, become the tensor NAME of
/// `dtype`: [shape...] each, or, where rows differ in length, [longest,
/// shape...] padded with zeros beside NAME_lengths, or one after the other
/// beside NAME_cu_seqlens. Bytes are little-endian. A row is bad whose numbers
/// are NULL, not finite where they shall be, not of that count, or do not fit
/// the dtype; an infinity or a fraction fits no integer. Negative zero is zero.
/// A row that is NULL is what `missing` says; with a mask there is NAME_mask,
/// float32 [].
///
/// With a window, rows are [window, shape...]. With `augment`, those of the
/// train side are changed whenever they come.
std::shared_ptr<const FieldKind> make_array(std::string name, Arrays array);

const SettingsTable<Arrays>& array_settings();

/// Null where the stored form is what a batch has.
std::unique_ptr<FieldFinisher> make_array_finisher(const Arrays& array,
                                                   bool train);

}  // namespace penstock
