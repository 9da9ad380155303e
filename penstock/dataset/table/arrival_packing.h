#pragma once

#include <functional>

#include "penstock/cache/cache.h"
#include "penstock/dataset/table/parsed_rows.h"

namespace penstock {

/// True where packing in order of id frees blocks early enough, at no time more
/// than 9/8 of the rows being held, parsed or packed; and where some rows of
/// the blocks are not packed at all.
bool arrived_by_id(const RowsById& rows);

/// Packs the blocks in the order of their arrival, so that each is freed when
/// it is packed, and then brings the rows of `table`, which is host memory,
/// into the order of their ids. No field has runs. Throws Error(transform) for
/// a value that its tensor cannot hold: of several such rows it names the first
/// by id. Gives those that are damaged.
DamagedRows pack_in_arrival_order(const RowsById& rows, std::size_t row_bytes,
                                  const std::function<RowEncoder()>& encoder,
                                  Table& table, const ShareOut& share_out);

}  // namespace penstock
