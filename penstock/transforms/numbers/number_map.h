#pragma once

#include "penstock/transforms/standardization.h"

namespace penstock {

/// A number as its statistics map it: to the number of its bucket, or to its
/// place among the train rows, where they have edges or quantiles. NaN stays.
///
/// Of n + 1 quantiles the i-th stands at i / n; between two of them the place
/// is interpolated, and of a value that several of them have it is the middle
/// of these. What is beyond them is at 0 or 1. As of a normal distribution,
/// these are 1e-7 away from the ends: -5.2 and 5.2.
double mapped(const Standardization& by, double number);

/// The number below which a share of a standard normal distribution lies.
double normal_quantile(double share);

}  // namespace penstock
