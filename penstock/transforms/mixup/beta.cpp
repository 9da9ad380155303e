#include "penstock/transforms/mixup/beta.h"

#include <cmath>

namespace penstock {
namespace {

/// The logarithm of a number of Gamma(alpha, 1): by rejection from a cubed
/// normal (Marsaglia and Tsang 2000) for alpha + 1, then by the power of a
/// uniform number, which would underflow for a small alpha if it were not a
/// logarithm.
double draw_log_gamma(Random& random, double alpha) {
  const double d = alpha + 1 - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = random.normal();
    double root = 1 + c * x;
    double uniform = 1 - random.uniform();  // in (0, 1]
    if (root <= 0) continue;
    double v = root * root * root;
    if (std::log(uniform) < 0.5 * x * x + d - d * v + d * std::log(v))
      return std::log(d * v) + std::log(1 - random.uniform()) / alpha;
  }
}

}  // namespace

// X / (X + Y) of two gamma numbers.
double draw_beta(Random& random, double alpha) {
  double x = draw_log_gamma(random, alpha);
  double y = draw_log_gamma(random, alpha);
  return 1 / (1 + std::exp(y - x));
}

}  // namespace penstock
