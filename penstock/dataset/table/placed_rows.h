#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "penstock/dataset/table/placement.h"
#include "penstock/dataset/table/scanned_table.h"

namespace penstock {

/// The stored rows of a table, where a plan has put them.
struct PlacedRows {
  /// That rows are read from, or were when they were placed; null: there is
  /// none.
  std::shared_ptr<const Store> store = {};
  /// But for rows in tier `none`; null where that is all.
  std::shared_ptr<const Table> table = {};
  /// By field; null where its samples are of equal size.
  std::vector<std::shared_ptr<const RunTable>> runs = {};
  /// Of runs that a device keeps, what the host sees of them.
  std::vector<std::shared_ptr<const RunTable>> heads = {};
  /// Of the rows in tier `none`, to know them again.
  std::shared_ptr<const std::vector<std::uint64_t>> row_hashes = {};
  DamagedRows damaged = {};
};

/// Encodes the rows of a scan, which takes their values, and puts them where
/// `placer` says: it may have to say it again. Where that is a store, it is
/// written to `file`. Finds their keys and their fingerprint, too.
PlacedRows packed_rows(const TableOrigin& origin, ScannedTable& scanned,
                       const TableStore& file, Placer& placer, Device& device,
                       const ShareOut& share_out);

/// Rows where their store has them.
PlacedRows rows_in(std::shared_ptr<const Store> store,
                   const TableOrigin& origin);
/// Copies them to where `placer` says. Each block of the store is checked on
/// its way.
PlacedRows copied_rows(const TableOrigin& origin, PlacedRows stored,
                       Placer& placer, Device& device);

}  // namespace penstock
