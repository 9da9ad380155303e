#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/once.h"
#include "penstock/base/sync.h"
#include "penstock/dataset/growing/background_scan.h"
#include "penstock/dataset/indexed/indexed_rows.h"
#include "penstock/dataset/indexed/recent_rows.h"

namespace penstock {

/// Samples of a source by position that are prepared when a batch is planned,
/// which is when their lengths are needed; and beside the batches all of them
/// are, for a store (see BackgroundScan). Once that is complete it is read, and
/// nothing is prepared any more.
///
/// Which samples there are, their numbers and sides are those that a scan
/// finds, so that batches are the same with the store and without. A sample
/// that a field rejects is a bad one of its batch, as long as one element; then
/// there is no store.
class GrowingDataset final : public Dataset {
 public:
  /// Rows of which decide() has found that they can grow. `options.fingerprint`
  /// identifies them; without `options.open` there will be no store.
  GrowingDataset(const TableDatasetOptions& options, BoundSource source);

  const std::string& fingerprint() const override {
    return options_.fingerprint;
  }
  void select(Side side, std::span<SampleId> ranks) const override;
  /// Prepares those that were not before: as many threads as `options.workers`
  /// share many samples.
  void lengths(std::size_t varying, std::span<const SampleRange> ranges,
               std::span<std::int32_t> out) const override;
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override;

 private:
  friend class GrowingFiller;
  using Rows = std::vector<std::shared_ptr<const PreparedRow>>;

  /// The same rows, in their store; null until that is complete.
  std::shared_ptr<const Dataset> stored() const;
  /// By place in `ids`, -1 being none.
  Rows prepared(std::span<const SampleId> ids) const;
  /// `ids` ascend.
  Rows prepare(std::span<const SampleId> ids) const;
  void prepare(std::span<const SampleId> ids, IndexedRows& by,
               std::span<std::shared_ptr<const PreparedRow>> to) const;
  void remember(std::span<const SampleId> ids, const Rows& rows) const;
  std::unique_ptr<IndexedRows> take_idle() const;
  std::int32_t length_of(std::size_t varying, SampleId id) const
      PENSTOCK_REQUIRES(mutex_) {
    return lengths_[varying][static_cast<std::size_t>(id)];
  }

  const TableDatasetOptions options_;
  const std::shared_ptr<Source> source_;
  const int most_readers_;  // at once
  const RowLayout layout_;
  const BoundFields bound_;
  const std::vector<Json> statistics_;  // by field
  SideIndexes sides_;
  std::vector<std::size_t> varying_;  // the field of each output that varies
  mutable FillMeters meters_{1, {}, false};
  mutable Mutex mutex_;
  // Of each output that varies, by sample; -1: not known yet.
  mutable std::vector<std::vector<std::int32_t>> lengths_
      PENSTOCK_GUARDED_BY(mutex_);
  mutable RecentRows recent_ PENSTOCK_GUARDED_BY(mutex_);
  mutable std::vector<std::unique_ptr<IndexedRows>> idle_
      PENSTOCK_GUARDED_BY(mutex_);
  mutable Once forgotten_;  // what was prepared, for what is stored
  std::unique_ptr<BackgroundScan> scan_;  // last: it ends first
};

}  // namespace penstock
