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
  NumberRow(const std::vector<ColumnType>& types, bool exact);

  std::vector<Place> places;
  std::size_t bytes = 0;
  bool exact;

  /// True where a row is a run of float64, or of exact int64, already.
  bool canonical() const;
  /// One float64 per column, or the bits of an exact integer.
  void decode(const std::byte* row, double* out) const;
};

}  // namespace penstock
