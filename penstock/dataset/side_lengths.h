#pragma once

#include <cstdint>
#include <vector>

#include "penstock/dataset/dataset_base.h"

namespace penstock {

/// The elements of each sample of a side, by rank, of the first output whose
/// lengths differ; there is such a one.
std::vector<std::int32_t> lengths_on(const Dataset& rows, Side side);

}  // namespace penstock
