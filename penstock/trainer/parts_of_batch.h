#pragma once

#include <cstdint>
#include <functional>

#include "penstock/trainer/batch_rows.h"

namespace penstock {

using Halved = std::function<void(std::int64_t from, std::int64_t to)>;

/// Gives `look` all rows of a batch in their order, at most `most` at once.
/// Where memory is short, half of them, and so on: then `most` is less from
/// here on, and `halved` is told; where that is empty, the error is thrown.
/// What `look` throws, it has not done.
void in_parts(const BatchRows& batch, std::int64_t& most,
              const std::function<void(const BatchRows& rows)>& look,
              const Halved& halved);

}  // namespace penstock
