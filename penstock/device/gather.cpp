#include <algorithm>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/device/device.h"

namespace penstock {
namespace {

// How far ahead memory is asked for, in rows, and how much of such a row: the
// rest of a long row comes by the processor's own prefetching. Random rows of
// a table of 300 MB and of 1 GB took 27 to 32 % less time with these two than
// without; 2 rows ahead, or 16 lines of each, gave less.
constexpr std::size_t kRowsAhead = 8;
constexpr std::size_t kBytesAhead = 512;
constexpr std::size_t kLine = 64;

const std::byte* start_of(const Gather& gather, std::int64_t row) {
  return gather.table + static_cast<std::size_t>(row) * gather.row_bytes;
}

void prefetch(const Gather& gather, std::int64_t row) {
  if (row < 0) return;
  const std::byte* start = start_of(gather, row);
  std::size_t bytes = std::min(gather.row_bytes, kBytesAhead);
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(start + i);
}

}  // namespace

void gather_on_host(const Gather& gather) {
  std::size_t count = gather.rows.size();
  for (std::size_t i = 0; i < std::min(count, kRowsAhead); ++i)
    prefetch(gather, gather.rows[i]);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kRowsAhead < count) prefetch(gather, gather.rows[i + kRowsAhead]);
    std::int64_t row = gather.rows[i];
    PENSTOCK_ASSERT(row >= -1, "a gather asks for a row below -1");
    for (const GatherField& field : gather.fields) {
      std::byte* to = gather.out + field.out_offset + i * field.bytes;
      if (row < 0)
        std::memset(to, 0, field.bytes);
      else
        std::memcpy(to, start_of(gather, row) + field.table_offset,
                    field.bytes);
    }
  }
}

}  // namespace penstock
