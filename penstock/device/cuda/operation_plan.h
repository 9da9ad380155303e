#pragma once

#include <span>
#include <vector>

#include "penstock/device/cuda/operation_work.h"
#include "penstock/device/device.h"

namespace penstock::cuda {

/// Windows, boxes and rows of one launch at most.
inline constexpr std::size_t kMostWindowsPerLaunch = 4096;
inline constexpr std::size_t kMostBoxesPerLaunch = 8192;
inline constexpr std::size_t kMostMovedPerLaunch = 4096;

/// A launch with its geometry; without blocks there is nothing to do.
struct CastLaunch {
  CastWork work;
  std::uint32_t blocks = 0;
};
struct CropLaunch {
  CropWork work;
  std::uint32_t blocks = 0;
};
struct MaskLaunch {
  MaskWork work;
  std::uint32_t blocks = 0;
};
struct MoveLaunch {
  MoveWork work;
  std::uint32_t blocks = 0;
};

/// Pure functions of operations that were checked. `staged`: where the device
/// can read the arguments of these windows, boxes or rows.
CastLaunch plan_cast(const CastNormalize& cast);
/// `first`: of the windows of the whole batch, the first of `windows`.
CropLaunch plan_crop(const CropFlip& crop, std::size_t first,
                     std::span<const CropWindow> windows,
                     const WorkWindow* staged);
MaskLaunch plan_mask(const Mask& mask, std::span<const MaskBox> boxes,
                     const WorkBox* staged);
MoveLaunch plan_move(const Move& move, std::span<const MovedRow> rows,
                     const WorkMovedRow* staged);

/// As the kernels read them.
WorkWindow work_of(const CropWindow& window);
WorkBox work_of(const MaskBox& box, const Mask& mask);
WorkMovedRow work_of(const MovedRow& row);

}  // namespace penstock::cuda
