#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "penstock/device/host_device.h"

/// What the gather's kernel does, in code that a processor can run as well:
/// the tests call it for every block and thread of a launch and compare with
/// run_on_host(). gather_plan.h makes the work, kernels.cu runs it.
///
/// Each part (a field) is copied in units: pieces of 16, 8, 4, 2 or 1 bytes,
/// the largest that the field's alignment allows. The units of a part stand in
/// one line, row after row, as they do in its tensor; a block takes the next
/// 1,024 or fewer of the line of one part, and a thread every 256th of those,
/// so that neighbours in a warp touch neighbours in memory. Several loads of a
/// thread are under way at once.
namespace penstock::cuda {

inline constexpr std::uint32_t kGatherThreads = 256;
inline constexpr std::uint32_t kUnitsAtOnce = 4;
/// 1.4 KiB of the 4 KiB that the parameters of a launch may take everywhere.
inline constexpr std::uint32_t kMostParts = 32;

/// One field of a gather.
struct GatherPart {
  std::byte* out = nullptr;          ///< row 0 of this launch
  const std::byte* table = nullptr;  ///< row 0 of the field's table
  std::uint64_t row_stride = 0;      ///< from a row of the table to the next
  std::uint32_t units = 0;           ///< in a row
  std::uint32_t unit_bytes = 0;      ///< 16, 8, 4, 2 or 1
  std::uint32_t first_block = 0;
};

/// As penstock::GatherPiece; if none exists, no row is so large.
struct WorkPiece {
  std::int64_t first = INT64_MAX;
  std::uint64_t shift = 0;
};
inline constexpr std::uint32_t kWorkPieces = 3;

/// One launch.
struct GatherWork {
  const std::int64_t* rows = nullptr;  ///< host memory that the device can read
  std::uint64_t count = 0;             ///< of rows
  std::uint32_t units_per_block = 0;
  std::uint32_t part_count = 0;
  GatherPart parts[kMostParts];
  WorkPiece pieces[kWorkPieces];
};

/// What of the line of which part is a block's.
struct BlockShare {
  std::uint64_t first_row;
  std::uint32_t part;
  std::uint32_t rows;  ///< that it touches
  std::uint32_t skip;  ///< units of the first row that are not its own
  std::uint32_t units;
};

PENSTOCK_HOST_DEVICE inline BlockShare share_of(const GatherWork& work,
                                                std::uint32_t block) {
  BlockShare share;
  share.part = 0;
  while (share.part + 1 < work.part_count &&
         block >= work.parts[share.part + 1].first_block)
    ++share.part;
  const GatherPart& part = work.parts[share.part];
  std::uint64_t most = work.units_per_block;
  std::uint64_t begin = (block - part.first_block) * most;
  std::uint64_t left = work.count * part.units - begin;
  share.units = static_cast<std::uint32_t>(left < most ? left : most);
  share.first_row = begin / part.units;
  share.skip = static_cast<std::uint32_t>(begin - share.first_row * part.units);
  share.rows = (share.skip + share.units - 1) / part.units + 1;
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

/// The start of a row of a part. As numbers: a piece may lie before the table.
PENSTOCK_HOST_DEVICE inline const std::byte* row_of(const GatherWork& work,
                                                    const GatherPart& part,
                                                    std::int64_t row) {
  std::uint64_t away = 0;
  for (const WorkPiece& piece : work.pieces)
    if (row >= piece.first) away = piece.shift;
  return reinterpret_cast<const std::byte*>(
      reinterpret_cast<std::uintptr_t>(part.table) +
      static_cast<std::uint64_t>(row) * part.row_stride + away);
}

/// Where the block's units begin in the part's tensor.
PENSTOCK_HOST_DEVICE inline std::uint64_t begin_of(const GatherPart& part,
                                                   const BlockShare& share) {
  return (share.first_row * part.units + share.skip) * part.unit_bytes;
}

/// copy_units() of a part whose units are these.
template <class Unit>
PENSTOCK_HOST_DEVICE inline void copy_as(const GatherWork& work,
                                         const BlockShare& share,
                                         std::uint32_t thread,
                                         const std::int64_t* near) {
  const GatherPart& part = work.parts[share.part];
  const std::uint32_t next_row = kGatherThreads / part.units;
  const std::uint32_t next_unit = kGatherThreads % part.units;
  std::uint32_t row = (share.skip + thread) / part.units;
  std::uint32_t unit = (share.skip + thread) % part.units;
  std::byte* out = part.out + begin_of(part, share);
  constexpr std::uint32_t kStride = kGatherThreads * kUnitsAtOnce;
  for (std::uint32_t i = thread; i < share.units; i += kStride) {
    Unit moved[kUnitsAtOnce];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t j = 0; j < kUnitsAtOnce; ++j) {
      moved[j] = Unit{};
      if (i + j * kGatherThreads < share.units && near[row] >= 0)
        moved[j] = unit_at<Unit>(row_of(work, part, near[row]) +
                                 std::uint64_t{unit} * sizeof(Unit));
      row += next_row;
      unit += next_unit;
      if (unit < part.units) continue;
      unit -= part.units;
      ++row;
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t j = 0; j < kUnitsAtOnce; ++j) {
      const std::uint32_t at = i + j * kGatherThreads;
      if (at < share.units)
        put_unit(out + std::uint64_t{at} * sizeof(Unit), moved[j]);
    }
  }
}

/// Second half: copies the units of one thread.
PENSTOCK_HOST_DEVICE inline void copy_units(const GatherWork& work,
                                            const BlockShare& share,
                                            std::uint32_t thread,
                                            const std::int64_t* near) {
  switch (work.parts[share.part].unit_bytes) {
    case 16:
      return copy_as<Unit16>(work, share, thread, near);
    case 8:
      return copy_as<std::uint64_t>(work, share, thread, near);
    case 4:
      return copy_as<std::uint32_t>(work, share, thread, near);
    case 2:
      return copy_as<std::uint16_t>(work, share, thread, near);
    default:
      return copy_as<std::uint8_t>(work, share, thread, near);
  }
}

}  // namespace penstock::cuda
