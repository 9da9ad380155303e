#pragma once

#include "penstock/base/random.h"

namespace penstock {

/// A number of the distribution Beta(alpha, alpha), alpha > 0: in [0, 1],
/// symmetric about 1/2.
double draw_beta(Random& random, double alpha);

}  // namespace penstock
