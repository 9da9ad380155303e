#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "penstock/dataset/table/scanned_table.h"

namespace penstock {

/// Encodes the rows of a scan in order of id, and puts the runs of each field
/// together. Once: a block is freed when its last row is packed, so that parsed
/// and packed rows are never held twice when rows arrive in order of their
/// keys.
class RowPacking {
 public:
  /// Without `keeps_runs` only their lengths are kept.
  RowPacking(const TableOrigin& origin, ScannedTable& scanned,
             const ShareOut& share_out, bool keeps_runs);

  using RowHashes = std::shared_ptr<const std::vector<std::uint64_t>>;
  /// Finds keys and fingerprint, and gives the hashes of the rows from `first`
  /// on. Before rows are packed.
  RowHashes find_keys(SampleId first);
  /// Into `table`, in the tiers of `plan`; null: what is not in tier `none` has
  /// runs alone.
  void pack(Table* table, const TierPlan& plan);
  /// All rows into a store that begins with them.
  void pack(StoreWriter& store);
  /// What was scanned into the store already.
  void take(std::shared_ptr<RunTable> lengths);

  const std::vector<std::shared_ptr<RunTable>>& runs() const { return runs_; }
  const DamagedRows& damaged() const { return damaged_; }

 private:
  bool has_runs() const;
  void pack_by_id(SampleId all, Table* table, StoreWriter* store);
  void encode(SampleId first, SampleId end, std::byte* out, StoreWriter* store);
  void make_room(SampleId first, SampleId end, std::vector<Values>& runs) const;

  const TableOrigin& origin_;
  ScannedTable& scanned_;
  const RowsById& rows_;
  const ShareOut& share_out_;
  std::vector<std::shared_ptr<RunTable>> runs_;  // by field
  DamagedRows damaged_;
};

/// Packs all rows into a store, with what is known of them: besides the
/// document about it "rows", packed in order of id; of field N with a run
/// "lengths/N", int32, and "runs/N"; "keys" and "key_bytes" as KeyList has
/// them; "sides", a byte a row; where rows are drawn "draws", of those on the
/// side train what draws_of() takes; and where columns name files that fields
/// read "files", named_files_of() takes them.
std::shared_ptr<const Store> write_store(const TableOrigin& origin,
                                         ScannedTable& scanned,
                                         const TableStore& file,
                                         const ShareOut& share_out,
                                         DamagedRows& damaged);

}  // namespace penstock
