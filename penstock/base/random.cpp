#include "penstock/base/random.h"

#include <cmath>
#include <numbers>

namespace penstock {

double Random::normal() {
  double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace penstock
