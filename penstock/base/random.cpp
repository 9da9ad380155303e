#include "penstock/base/random.h"

#include <cmath>
#include <numbers>

namespace penstock {

// Box and Muller's second number is thrown away: a value that were kept would
// make a draw depend on the ones before it. 1 - uniform() is never 0.
double Random::normal() {
  double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace penstock
