#pragma once

#include <span>

#include "penstock/device/cuda/gather_work.h"
#include "penstock/device/device.h"

namespace penstock::cuda {

/// Rows of one launch at most. A batch of more takes several, so that the
/// device works on the first rows while the host stages the next.
inline constexpr std::size_t kMostRowsPerLaunch = 32768;

/// A launch with its geometry.
struct GatherLaunch {
  GatherWork work;
  std::uint32_t blocks = 0;      ///< 0: there is nothing to copy
  std::uint32_t near_bytes = 0;  ///< for the row indices of one block
};

/// Plans the launch that copies `count` rows from row `first` of the batch on,
/// for as many of `fields` as fit: the first kMostParts. `staged` are the
/// rows' indices where the device can read them; `processors` those of the
/// device; `pieces` those of the gather. A pure function. A field that extends
/// beyond its row is an internal error.
GatherLaunch plan_launch(std::span<const GatherField> fields, std::size_t first,
                         std::size_t count, const std::int64_t* staged,
                         int processors,
                         std::span<const GatherPiece> pieces = {});

}  // namespace penstock::cuda
