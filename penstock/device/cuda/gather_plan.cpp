#include "penstock/device/cuda/gather_plan.h"

#include <algorithm>
#include <bit>

#include "penstock/base/error.h"

namespace penstock::cuda {
namespace {

// More pieces than a row of 128 MiB has, byte by byte.
constexpr std::uint64_t kMostRowUnits = std::uint64_t{1} << 27;
// CUDA takes 2^31 - 1.
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 30;

std::uint64_t address(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

/// The largest unit to which every address of a field is aligned, in each row.
/// The lowest set bit of all numbers ORed together is the largest power of two
/// that divides each of them; the 16 among them is the widest load of a thread.
std::uint32_t unit_of(const GatherField& field, const std::byte* out,
                      std::span<const GatherPiece> pieces) {
  std::uint64_t all =
      address(field.table) | field.row_stride | field.bytes | address(out) | 16;
  for (const GatherPiece& piece : pieces) all |= piece.shift;
  return std::uint32_t{1} << std::countr_zero(all);
}

/// Lays out the blocks of all parts, each with so many units, and says how many
/// there are.
std::uint64_t lay_out(GatherWork& work, std::uint64_t units_per_block) {
  work.units_per_block = static_cast<std::uint32_t>(units_per_block);
  std::uint64_t blocks = 0;
  for (GatherPart& part : std::span(work.parts, work.part_count)) {
    part.first_block = static_cast<std::uint32_t>(blocks);
    blocks += (work.count * part.units + units_per_block - 1) / units_per_block;
  }
  return blocks;
}

/// A small batch is spread over all processors; only a large one has so much to
/// do that a thread takes several units.
std::uint64_t lay_out(GatherWork& work, int processors) {
  const auto enough = static_cast<std::uint64_t>(2 * std::max(processors, 1));
  std::uint64_t units = std::uint64_t{kGatherThreads} * kUnitsAtOnce;
  std::uint64_t blocks = lay_out(work, units);
  while (units > kGatherThreads && blocks < enough)
    blocks = lay_out(work, units /= 2);
  while (blocks > kMostBlocks) blocks = lay_out(work, units *= 2);
  return blocks;
}

/// Rows that a block of a part touches at most: it begins anywhere in the
/// first.
/// A block of u units that begins at the last unit of a row reaches ceil((units
/// - 1 + u) / units) rows, whose indices it keeps in its own memory.
std::uint64_t rows_of_block(const GatherWork& work, const GatherPart& part) {
  return std::min<std::uint64_t>(
      (part.units - 1 + work.units_per_block - 1) / part.units + 1, work.count);
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
    work.parts[work.part_count++] = {.out = out,
                                     .table = field.table,
                                     .row_stride = field.row_stride,
                                     .units = static_cast<std::uint32_t>(units),
                                     .unit_bytes = unit};
    row_units += units;
  }
  if (row_units == 0 || count == 0) return launch;
  work.count = count;
  launch.blocks = static_cast<std::uint32_t>(lay_out(work, processors));
  std::uint64_t rows = 0;
  for (const GatherPart& part : std::span(work.parts, work.part_count))
    rows = std::max(rows, rows_of_block(work, part));
  launch.near_bytes = static_cast<std::uint32_t>(sizeof(std::int64_t) * rows);
  return launch;
}

}  // namespace penstock::cuda
