#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/standardization.h"

namespace penstock {

/// How the parsed numbers of a row lie: one after the other, each in the width
/// of its column, without gaps.
struct NumberRow {
  struct Place {
    Dtype dtype;
    std::size_t offset;
  };
  /// `exact`: the integers keep their 64 bits and are never rounded to float64.
  /// `masked`: behind the numbers a byte for each of them, 0 where it is
  /// missing; its own bytes are then zeros.
  NumberRow(const std::vector<ColumnType>& types, bool exact, bool masked);

  std::vector<Place> places;
  std::size_t bytes = 0;
  bool exact, masked;

  /// True where a row is a run of float64, or of exact int64 and what is
  /// missing of them, already.
  bool canonical() const;
  /// One float64 per column, NaN where it is missing; or the bits of an exact
  /// integer.
  void decode(const std::byte* row, double* out) const;
  /// Of column `at`.
  bool present(const std::byte* row, std::size_t at) const {
    return !masked || row[bytes - places.size() + at] != std::byte{0};
  }
};

}  // namespace penstock
