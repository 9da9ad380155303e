#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "penstock/device/host_device.h"

/// What the gather's kernel does, in code that a processor can run as well:
/// the tests call it for every block and thread of a launch and compare with
/// run_on_host(). gather_plan.h makes the work, kernels.cu runs it.
///
/// A row of the batch is cut into units: pieces of 16, 8, 4, 2 or 1 bytes,
/// the largest that a field's alignment allows. The units of all rows stand in
/// one line, row after row; a block takes the next few hundred of that line
/// and a thread every 256th of its block, so that neighbours in a warp touch
/// neighbours in memory. Several loads of a thread are under way at once.
namespace penstock::cuda {

inline constexpr std::uint32_t kGatherThreads = 256;
inline constexpr std::uint32_t kMostUnitsPerThread = 8;
inline constexpr std::uint32_t kUnitsAtOnce = 4;
/// 1.3 KiB of the 4 KiB that the parameters of a launch may take everywhere.
inline constexpr std::uint32_t kMostParts = 32;

/// One field of a gather.
struct GatherPart {
  std::byte* out = nullptr;          ///< row 0 of this launch
  const std::byte* table = nullptr;  ///< row 0 of the field's table
  std::uint64_t row_stride = 0;      ///< from a row of the table to the next
  std::uint32_t first = 0;       ///< of a row's units, the first one of ours
  std::uint32_t units = 0;       ///< in a row
  std::uint32_t unit_bytes = 0;  ///< 16, 8, 4, 2 or 1
};

/// As penstock::GatherPiece; where there is none, no row is so large.
struct WorkPiece {
  std::int64_t first = INT64_MAX;
  std::uint64_t shift = 0;
};
inline constexpr std::uint32_t kWorkPieces = 3;

/// One launch.
struct GatherWork {
  const std::int64_t* rows = nullptr;  ///< host memory that the device can read
  std::uint64_t units = 0;             ///< of all rows
  std::uint32_t row_units = 0;         ///< of one row, all parts
  std::uint32_t units_per_thread = 0;
  std::uint32_t part_count = 0;
  GatherPart parts[kMostParts];
  WorkPiece pieces[kWorkPieces];
};

/// Which part of the line of units is a block's.
struct BlockShare {
  std::uint64_t first_row;
  std::uint32_t rows;  ///< that it touches
  std::uint32_t skip;  ///< units of the first row that are not its own
  std::uint32_t units;
};

PENSTOCK_HOST_DEVICE inline BlockShare share_of(const GatherWork& work,
                                                std::uint64_t block) {
  std::uint64_t most = std::uint64_t{kGatherThreads} * work.units_per_thread;
  std::uint64_t begin = block * most;
  std::uint64_t left = work.units - begin;
  BlockShare share;
  share.units = static_cast<std::uint32_t>(left < most ? left : most);
  share.first_row = begin / work.row_units;
  share.skip =
      static_cast<std::uint32_t>(begin - share.first_row * work.row_units);
  share.rows = (share.skip + share.units - 1) / work.row_units + 1;
  return share;
}

/// First half of a block's work: each thread brings some of the block's row
/// indices to `near`, memory of the block. They lie in the host's memory, far
/// away, and are read from there once. All threads have done this before the
/// first of them begins with copy_units().
PENSTOCK_HOST_DEVICE inline void fetch_rows(const GatherWork& work,
                                            const BlockShare& share,
                                            std::uint32_t thread,
                                            std::int64_t* near) {
  for (std::uint32_t i = thread; i < share.rows; i += kGatherThreads)
    near[i] = work.rows[share.first_row + i];
}

struct alignas(16) Unit16 {
  std::uint64_t low, high;
};

/// A table holds whatever its fields are, which a GPU does not care about and
/// a processor's compiler does.
template <class Unit>
PENSTOCK_HOST_DEVICE inline Unit unit_at(const std::byte* from) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const Unit*>(from);
#else
  Unit unit;
  std::memcpy(&unit, from, sizeof(unit));
  return unit;
#endif
}
template <class Unit>
PENSTOCK_HOST_DEVICE inline void put_unit(std::byte* to, Unit unit) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<Unit*>(to) = unit;
#else
  std::memcpy(to, &unit, sizeof(unit));
#endif
}

/// A unit on its way.
struct MovedUnit {
  Unit16 value;
  std::byte* to;
  std::uint32_t bytes;  ///< 0: none
};

/// Unit `at` of the block's rows, those that it skips counted.
PENSTOCK_HOST_DEVICE inline MovedUnit load_unit(const GatherWork& work,
                                                const BlockShare& share,
                                                const std::int64_t* near,
                                                std::uint32_t at) {
  std::uint32_t row = at / work.row_units;
  std::uint32_t unit = at - row * work.row_units;
  std::uint32_t p = 0;
  while (p + 1 < work.part_count && unit >= work.parts[p + 1].first) ++p;
  const GatherPart& part = work.parts[p];
  std::uint64_t within = std::uint64_t{unit - part.first} * part.unit_bytes;
  std::uint64_t part_bytes = std::uint64_t{part.units} * part.unit_bytes;
  MovedUnit moved;
  moved.value = Unit16{0, 0};
  moved.to = part.out + (share.first_row + row) * part_bytes + within;
  moved.bytes = part.unit_bytes;
  if (near[row] < 0) return moved;
  std::uint64_t away = 0;
  for (const WorkPiece& piece : work.pieces)
    if (near[row] >= piece.first) away = piece.shift;
  // As numbers: a piece may lie before the table.
  auto* from = reinterpret_cast<const std::byte*>(
      reinterpret_cast<std::uintptr_t>(part.table) +
      static_cast<std::uint64_t>(near[row]) * part.row_stride + within + away);
  switch (part.unit_bytes) {
    case 16:
      moved.value = unit_at<Unit16>(from);
      break;
    case 8:
      moved.value.low = unit_at<std::uint64_t>(from);
      break;
    case 4:
      moved.value.low = unit_at<std::uint32_t>(from);
      break;
    case 2:
      moved.value.low = unit_at<std::uint16_t>(from);
      break;
    default:
      moved.value.low = unit_at<std::uint8_t>(from);
  }
  return moved;
}

PENSTOCK_HOST_DEVICE inline void store_unit(const MovedUnit& moved) {
  switch (moved.bytes) {
    case 16:
      put_unit(moved.to, moved.value);
      break;
    case 8:
      put_unit(moved.to, moved.value.low);
      break;
    case 4:
      put_unit(moved.to, static_cast<std::uint32_t>(moved.value.low));
      break;
    case 2:
      put_unit(moved.to, static_cast<std::uint16_t>(moved.value.low));
      break;
    case 1:
      put_unit(moved.to, static_cast<std::uint8_t>(moved.value.low));
      break;
    default:
      break;
  }
}

/// Second half: copies the units of one thread.
PENSTOCK_HOST_DEVICE inline void copy_units(const GatherWork& work,
                                            const BlockShare& share,
                                            std::uint32_t thread,
                                            const std::int64_t* near) {
  constexpr std::uint32_t kStride = kGatherThreads * kUnitsAtOnce;
  for (std::uint32_t i = thread; i < share.units; i += kStride) {
    MovedUnit moved[kUnitsAtOnce];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t j = 0; j < kUnitsAtOnce; ++j) {
      std::uint32_t unit = i + j * kGatherThreads;
      moved[j].bytes = 0;
      if (unit < share.units)
        moved[j] = load_unit(work, share, near, share.skip + unit);
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t j = 0; j < kUnitsAtOnce; ++j) store_unit(moved[j]);
  }
}

}  // namespace penstock::cuda
