#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/transforms/missing_value.h"
#include "penstock/transforms/numbers/number_row.h"

namespace penstock {

/// Columns of the table, one number each -> [columns]; or one -> [].
struct Numbers {
  /// What becomes of a NULL, or of NaN where the source holds it; a mask is 0
  /// after standardising.
  using Missing = MissingValue::By;

  std::vector<std::string> columns;
  bool single = false;  ///< one column, without a dimension of its own
  /// float32, float64, float16, an integer of any width but uint64, or boolean
  Dtype dtype = Dtype::float32;
  NumberMaths maths;  ///< before standardising
  bool standardize = false;
  bool min_max = false;  ///< from 0 to 1 over the train rows, in its place
  /// In place of these two: a bucket, int64, from 0 on, between `edges`, or so
  /// many `buckets` of as many train rows each. 0: numbers stay numbers.
  std::vector<double> edges = {};
  std::int64_t buckets = 0;
  /// Or the place among the train rows, from 0 to 1, or as of a normal
  /// distribution.
  enum class Quantile : std::uint8_t { none, uniform, normal };
  Quantile quantile = Quantile::none;
  Missing missing = Missing::bad;
  double fill = 0;  ///< before `maths`; mean and median are behind it

  bool bucketized() const { return buckets > 0 || !edges.empty(); }
  /// What the tensor holds.
  Dtype made() const { return bucketized() ? Dtype::int64 : dtype; }
};

}  // namespace penstock
