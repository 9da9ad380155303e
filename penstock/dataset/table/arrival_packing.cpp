#include "penstock/dataset/table/arrival_packing.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "penstock/dataset/row_finisher.h"

// A row is stored at its id, the rank of its key. Where rows arrive in another
// order, packing by id would keep nearly every parsed block until the end, next
// to the packed rows: twice the memory. So the blocks are packed in the order
// in which they arrived, each is freed once it is packed, and the packed
// rows are then permuted in place.
//
// Threads share the blocks of one batch; the table grows between batches, on
// the caller's thread alone. The permutation moves each row once.

namespace penstock {
namespace {

/// Blocks that are packed together, and where the rows of each begin.
struct Batch {
  std::size_t first = 0, end = 0;  // blocks
  std::vector<std::int64_t> starts = {};
  std::int64_t rows = 0;
};

Batch next_batch(const std::vector<ParsedBlock>& blocks, std::size_t first,
                 std::int64_t most) {
  Batch batch{.first = first, .end = first};
  while (batch.end < blocks.size()) {
    std::int64_t rows = blocks[batch.end].rows();
    if (batch.end > first && batch.rows + rows > most) break;
    batch.starts.push_back(batch.rows);
    batch.rows += rows;
    ++batch.end;
  }
  return batch;
}

/// Blocks that were freed could be packed, so the fault is in one of the
/// others.
void name_first_fault(const RowsById& rows, std::size_t row_bytes,
                      RowEncoder encoder) {
  std::vector<std::byte> unused(row_bytes);
  Faults damaged;
  for (SampleId id = 0; id < rows.count(); ++id)
    if (!rows.block(id).fields.empty())
      encoder.encode(rows, id, id + 1, unused.data(), {}, &damaged);
}

/// Of each block, by number.
using BlockFaults = std::map<std::size_t, Faults>;

DamagedRows by_id(const RowsById& rows, BlockFaults found) {
  for (auto& [block, faults] : found) keep_first_of_each(faults, 0);
  DamagedRows damaged;
  for (SampleId id = 0; !found.empty() && id < rows.count(); ++id) {
    const auto block = found.find(rows.ref(id).block);
    if (block == found.end()) continue;
    const std::int64_t row{rows.ref(id).row};
    const auto fault =
        std::ranges::lower_bound(block->second.rows, row, {}, &RowFault::row);
    if (fault != block->second.rows.end() && fault->row == row)
      damaged.emplace(id, *fault);
  }
  return damaged;
}

}  // namespace

bool arrived_by_id(const RowsById& rows) {
  std::vector<std::int64_t> left;
  for (const ParsedBlock& block : rows.blocks) left.push_back(block.rows());
  std::int64_t held = std::accumulate(left.begin(), left.end(), 0LL);
  if (held > rows.count()) return true;
  const std::int64_t most = held + held / 8;
  for (SampleId id = 0; id < rows.count(); ++id) {
    if (held + id > most) return false;
    if (--left[rows.ref(id).block] == 0) held -= rows.block(id).rows();
  }
  return true;
}

DamagedRows pack_in_arrival_order(const RowsById& rows, std::size_t row_bytes,
                                  const std::function<RowEncoder()>& encoder,
                                  Table& table, const ShareOut& share_out) {
  std::vector<ParsedBlock>& blocks = rows.blocks;
  std::vector<std::int64_t> starts;  // the place of each block's first row
  std::int64_t placed = 0;
  for (const ParsedBlock& block : blocks) {
    starts.push_back(placed);
    placed += block.rows();
  }
  Mutex mutex;
  BlockFaults found;
  Batch batch;
  while (batch.end < blocks.size()) {
    batch = next_batch(blocks, batch.end, table.most_rows());
    std::byte* out = table.append(batch.rows);
    try {
      share_out(
          std::ssize(batch.starts), [&](std::int64_t from, std::int64_t to) {
            RowEncoder rows_of = encoder();
            for (auto b = static_cast<std::size_t>(from);
                 b < static_cast<std::size_t>(to); ++b) {
              Faults damaged;
              rows_of.encode(
                  blocks[batch.first + b],
                  out + static_cast<std::size_t>(batch.starts[b]) * row_bytes,
                  {}, &damaged);
              if (damaged.rows.empty()) continue;
              Lock lock(mutex);
              found.emplace(batch.first + b, std::move(damaged));
            }
          });
    } catch (const Error&) {
      name_first_fault(rows, row_bytes, encoder());
      throw;
    }
    for (std::size_t b = batch.first; b < batch.end; ++b)
      blocks[b] = ParsedBlock();
  }
  table.reorder([&](std::int64_t id) {
    RowRef ref = rows.ref(id);
    return starts[ref.block] + ref.row;
  });
  return by_id(rows, std::move(found));
}

}  // namespace penstock
