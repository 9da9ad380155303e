#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/transforms/standardization.h"

namespace penstock {

/// Adds to a fit's statistics, as "fill", the median of each number over the
/// train rows: exactly, in four passes more or less, each of which counts the
/// values by 16 bits of them (a radix select), so that memory does not grow
/// with the rows. Of an even number it is the mean of the middle two; of none
/// it is 0.
std::unique_ptr<FieldFit> with_medians(std::unique_ptr<FieldFit> fit,
                                       std::vector<std::string> names,
                                       std::unique_ptr<NumberRows> rows);

}  // namespace penstock
