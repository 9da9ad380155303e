#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/sources/source.h"

namespace penstock {

/// Row i is row `positions[i]` of a source by position, in any order, and any
/// of them more than once. Nothing is copied: rows are read where they are.
/// Positions that are not there are the caller's error.
std::unique_ptr<Source> picked(
    std::unique_ptr<Source> source,
    std::shared_ptr<const std::vector<std::int64_t>> positions);

}  // namespace penstock
