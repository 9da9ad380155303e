#pragma once

#include <cstddef>
#include <vector>

#include "penstock/sources/blocks.h"
#include "penstock/sources/source.h"
#include "penstock/sources/stop.h"

namespace penstock {

/// Collects the rows of a scan in blocks and hands them to its sink, so that
/// none is larger than the limit. A scan calls make_room(), then adds a row to
/// `keys` and to each column of `block`.
class BlockWriter {
 public:
  BlockWriter(ColumnType key, std::vector<BlockColumn> columns,
              BlockLimit limit, const BlockSink& sink, StopFlag stop);

  /// Makes room for a row of about so many bytes. False: the sink has enough.
  bool make_room(std::size_t row_bytes) {
    bool full = block.rows >= limit_.rows ||
                (block.rows > 0 && bytes_ + row_bytes > limit_.bytes);
    if (full && !hand_on()) return false;
    bytes_ += row_bytes;
    return true;
  }
  /// Hands on what is left.
  void finish() {
    if (block.rows > 0) hand_on();
  }

  KeyList keys;
  Block block;

 private:
  bool hand_on();

  const std::vector<BlockColumn> columns_;
  const BlockLimit limit_;
  const BlockSink& sink_;
  const StopFlag stop_;
  BlockCapacity capacity_;
  std::size_t bytes_ = 0;  // of the block
};

/// Whether a row of this column takes as much room as its value does in the
/// database, besides bytes_beside_text().
inline bool grows_with_value(ColumnType type) {
  return type.is_text() || type.kind == ColumnKind::binary ||
         type.kind == ColumnKind::list;
}

/// What a row of this column takes besides the bytes of a text.
inline std::size_t bytes_beside_text(ColumnType type) {
  constexpr std::size_t kOffset = 8, kValidity = 1;
  if (type.kind == ColumnKind::uuid) return 16 + kValidity;
  if (type.kind == ColumnKind::number) return size_of(type.dtype) + kValidity;
  return kOffset + kValidity;
}

}  // namespace penstock
