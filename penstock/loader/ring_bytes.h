#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/loader/options.h"

namespace penstock {

/// The bytes that a loader's ring of slots takes at most: on the device, and
/// again as much pinned on the host where batches are copied. `rows` is how
/// many there are on the loader's side, or more: a batch that is not padded has
/// no more. `longest` as DatasetInfo has it.
std::size_t ring_bytes(const LoaderOptions& options,
                       const std::vector<Output>& outputs, std::int64_t rows,
                       std::span<const std::int32_t> longest = {});

}  // namespace penstock
