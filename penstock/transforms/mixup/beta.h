#pragma once

#include "penstock/base/random.h"

namespace penstock {

/// What alpha may be.
constexpr double kLeastAlpha = 1e-3, kMostAlpha = 1e3;

/// A number of the distribution Beta(alpha, alpha), alpha > 0: in [0, 1],
/// symmetric about 1/2.
double draw_beta(Random& random, double alpha);

}  // namespace penstock
