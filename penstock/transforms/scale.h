#pragma once

#include "penstock/transforms/fit.h"

namespace penstock {

/// What undoes a standardisation. The default one changes nothing.
struct Scale {
  double mean = 0;
  double divisor = 1;

  /// The number as it was before standardising.
  double restored(double standardised) const {
    return standardised * divisor + mean;
  }
};

/// That of a key or column, whether it was standardised or not.
inline Scale scale_of(const Standard& standard) {
  if (!standard.standardize) return {};
  return {.mean = standard.mean, .divisor = standard.divisor};
}

}  // namespace penstock
