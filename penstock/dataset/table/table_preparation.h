#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/file_lock.h"
#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/dataset/table/scan.h"
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
  FitRows fit_rows();
  /// The rows, where they were in a store; else null.
  const TableDataset* stored() const {
    return in_store_ ? set_.get() : nullptr;
  }
  /// Encodes and keeps the rows, within `budgets`. Once.
  std::shared_ptr<const TableDataset> finish(std::vector<Json> statistics,
                                             const TierBudgets& budgets);

 private:
  void scan();
  AskedScan asked() const;
  void begin_store();
  void remove_what_is_left() const;

  const std::shared_ptr<TableDataset> set_;
  const std::string shown_;  // the source
  Device& device_;
  FileLock turn_;
  bool in_store_ = false;
  std::optional<Spill> spill_;
  std::optional<ScanParts> parts_;  // where the scan can go on later
  Scan pass_;
  std::optional<RowsById> rows_;
  StageMeter meter_;
  ShareOut share_out_;
};

}  // namespace penstock
