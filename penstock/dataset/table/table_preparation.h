#pragma once

#include <memory>
#include <vector>

#include "penstock/base/file_lock.h"
#include "penstock/dataset/table/stored_table.h"
#include "penstock/dataset/table/table_dataset.h"

namespace penstock {

/// A table between its scan and its statistics: its rows are known, and not yet
/// encoded. So fields can be fitted over the rows of several tables together.
/// One thread's.
class TablePreparation {
 public:
  /// Scans `source`, or finds the rows in the store of an earlier run. Throws
  /// what TableDataset::prepare() throws.
  TablePreparation(const TableDatasetOptions& options, BoundSource source,
                   Device& device);
  ~TablePreparation();

  /// Statistics by field that need not be found: those of the store, or of the
  /// options; empty if none exist.
  std::vector<Json> known_statistics() const;
  /// For fits, where the rows were scanned.
  FitRows fit_rows() const;
  /// The rows, where they were in a store; else null.
  const TableDataset* stored() const { return stored_.get(); }
  /// Encodes and keeps the rows, within `budgets`. Once.
  std::shared_ptr<const TableDataset> finish(std::vector<Json> statistics,
                                             const TierBudgets& budgets);

 private:
  friend class TableDataset;
  /// Before anything is read.
  struct Begun {};
  TablePreparation(Begun, const TableDatasetOptions& options,
                   BoundSource source, Device& device);
  void take_from_store();
  std::shared_ptr<const TableDataset> placed(const StoredTable& stored) const;
  void take_in_turn();
  void remove_what_is_left() const;
  bool written_by_others(const Placer& placer);
  std::shared_ptr<const TableDataset> pack(const TierBudgets& budgets);

  const std::shared_ptr<const TableOrigin> origin_;
  Device& device_;
  TableStore file_;  // that was looked at last
  FileLock turn_;    // to write it
  StageMeter meter_;
  const ShareOut share_out_;
  std::unique_ptr<ScannedTable> scanned_;
  std::shared_ptr<const TableDataset> stored_;
};

}  // namespace penstock
