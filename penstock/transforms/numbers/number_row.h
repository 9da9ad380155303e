#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/standardization.h"

namespace penstock {

/// What is done to a number before it is standardised: clipped, then log1p.
struct NumberMaths {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool log1p = false;

  bool any() const { return log1p || clips(); }
  bool clips() const { return least > -HUGE_VAL || most < HUGE_VAL; }
  /// False for a number without a log1p, where that is taken.
  bool takes(double number) const {
    return !log1p || std::clamp(number, least, most) > -1;
  }
  /// NaN stays.
  double of(double number) const {
    if (std::isnan(number)) return number;
    number = std::clamp(number, least, most);
    return log1p ? std::log1p(number) : number;
  }
};

/// How the parsed numbers of a row lie: one after the other, each in the width
/// of its column, without gaps.
struct NumberRow {
  struct Place {
    Dtype dtype;
    std::size_t offset;
  };
  /// `exact`: the integers keep their 64 bits, also those of uint64, and are
  /// never rounded to float64.
  /// `masked`: behind the numbers a byte for each of them, 0 where it is
  /// missing; its own bytes are then zeros.
  NumberRow(const std::vector<ColumnType>& types, bool exact, bool masked,
            NumberMaths maths = {});

  std::vector<Place> places;
  std::size_t bytes = 0;
  bool exact, masked;
  NumberMaths maths;
  bool infinities = false;  ///< they are values, as NaN then is

  /// True where a row is a run of float64, or of exact int64 and what is
  /// missing of them, already.
  bool canonical() const;
  /// One float64 per column, NaN where it is missing; or the bits of an exact
  /// integer.
  void decode(const std::byte* row, double* out) const;
  /// The same after `maths`, of which exact integers have none.
  void prepare(const std::byte* row, double* out) const;
  /// Of column `at`.
  bool present(const std::byte* row, std::size_t at) const {
    return !masked || row[bytes - places.size() + at] != std::byte{0};
  }
};

}  // namespace penstock
