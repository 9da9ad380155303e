#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/batch.h"

namespace penstock {

/// Throws Error(request), code loader.next_into, unless `to` can take each
/// batch: the same tensors in the same order, contiguous, on the device or on
/// the host, with room for `rows` rows. Samples that differ in length have no
/// fixed shape and are refused.
void check_targets(std::span<const TensorView> to,
                   const std::vector<BatchTensor>& tensors, std::int64_t rows,
                   const Device& device);

/// Queues the copies of a batch, and then the end of its memory's use.
FilledBatch copied(Batch batch, std::span<const TensorView> to, Stream& stream);

}  // namespace penstock
