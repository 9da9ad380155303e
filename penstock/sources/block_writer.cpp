#include "penstock/sources/block_writer.h"

#include <utility>

#include "penstock/base/error.h"

namespace penstock {

BlockWriter::BlockWriter(ColumnType key, std::vector<BlockColumn> columns,
                         BlockLimit limit, const BlockSink& sink, StopFlag stop)
    : keys(key),
      block(block_of(columns)),
      columns_(std::move(columns)),
      limit_(limit),
      sink_(sink),
      stop_(stop) {
  PENSTOCK_ASSERT(limit.rows > 0, "a block holds at least one row");
}

bool BlockWriter::hand_on() {
  const ColumnType key = keys.type();
  capacity_.measure(block);
  end_if_stopped(stop_);
  if (!sink_(keys, block)) return false;
  if (keys.type() != key)
    keys = KeyList(key);
  else
    keys.clear();
  if (is_block_of(columns_, block)) {
    block.clear();
  } else {
    block = block_of(columns_);
    capacity_.make(block);
  }
  bytes_ = 0;
  return true;
}

}  // namespace penstock
