#include "penstock/device/cuda/gather_plan.h"

#include <algorithm>
#include <bit>

#include "penstock/base/error.h"

namespace penstock::cuda {
namespace {

// More pieces than a row of 128 MiB has, byte by byte. Keeps the number of
// blocks of a launch below CUDA's 2^31.
constexpr std::uint64_t kMostRowUnits = std::uint64_t{1} << 27;

std::uint64_t address(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

/// The largest unit to which every address of a field is aligned, in each row.
std::uint32_t unit_of(const GatherField& field, const std::byte* out,
                      std::span<const GatherPiece> pieces) {
  std::uint64_t all =
      address(field.table) | field.row_stride | field.bytes | address(out) | 16;
  for (const GatherPiece& piece : pieces) all |= piece.shift;
  return std::uint32_t{1} << std::countr_zero(all);
}

std::uint64_t blocks_for(const GatherWork& work, std::uint32_t per_thread) {
  std::uint64_t share = std::uint64_t{kGatherThreads} * per_thread;
  return (work.units + share - 1) / share;
}

}  // namespace

GatherLaunch plan_launch(std::span<const GatherField> fields, std::size_t first,
                         std::size_t count, const std::int64_t* staged,
                         int processors, std::span<const GatherPiece> pieces) {
  static_assert(kWorkPieces == kMostPieces);
  PENSTOCK_ASSERT(pieces.size() <= kMostPieces,
                  "a table is in too many pieces");
  GatherLaunch launch;
  GatherWork& work = launch.work;
  work.rows = staged;
  for (std::size_t p = 0; p < pieces.size(); ++p)
    work.pieces[p] = {pieces[p].first, pieces[p].shift};
  std::uint64_t row_units = 0;
  for (const GatherField& field :
       fields.first(std::min<std::size_t>(fields.size(), kMostParts))) {
    if (field.bytes == 0) continue;
    PENSTOCK_ASSERT(field.bytes <= field.row_stride,
                    "a field of a gather extends beyond its row");
    std::byte* out = field.out + first * field.bytes;
    std::uint32_t unit = unit_of(field, out, pieces);
    std::uint64_t units = field.bytes / unit;
    PENSTOCK_ASSERT(row_units + units <= kMostRowUnits,
                    "a row of a gather has too many pieces");
    work.parts[work.part_count++] = {
        .out = out,
        .table = field.table,
        .row_stride = field.row_stride,
        .first = static_cast<std::uint32_t>(row_units),
        .units = static_cast<std::uint32_t>(units),
        .unit_bytes = unit};
    row_units += units;
  }
  if (row_units == 0 || count == 0) return launch;
  work.row_units = static_cast<std::uint32_t>(row_units);
  work.units = row_units * count;
  // A small batch is spread over all processors; only a large one has so much
  // to do that a thread may take more of it.
  auto enough = static_cast<std::uint64_t>(2 * std::max(processors, 1));
  std::uint32_t per_thread = kMostUnitsPerThread;
  while (per_thread > 1 && blocks_for(work, per_thread) < enough)
    per_thread /= 2;
  work.units_per_thread = per_thread;
  launch.blocks = static_cast<std::uint32_t>(blocks_for(work, per_thread));
  // A block begins anywhere in its first row.
  std::uint64_t rows_of_block =
      (row_units - 1 + std::uint64_t{kGatherThreads} * per_thread - 1) /
          row_units +
      1;
  launch.near_bytes = static_cast<std::uint32_t>(
      sizeof(std::int64_t) * std::min<std::uint64_t>(rows_of_block, count));
  return launch;
}

}  // namespace penstock::cuda
