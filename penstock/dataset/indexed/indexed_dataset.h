#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/dataset/dataset_base.h"
#include "penstock/dataset/growing/background_scan.h"
#include "penstock/dataset/row_place.h"
#include "penstock/dataset/table/larger_rows.h"
#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/sources/sources.h"

namespace penstock {

struct TableDatasetOptions;

/// How samples of a source by position are prepared.
struct IndexedOptions {
  std::vector<Field> fields;
  Split split = {};  ///< by position
  /// What an earlier scan found, for fields that are fitted.
  std::optional<Json> statistics = {};
  /// Memory of the device that may finish fields whose stored rows are of
  /// equal size; cpu: all are finished on the host.
  MemoryKind finish_on = MemoryKind::cpu;
};

/// Samples that are read by their position when a batch needs them: nothing is
/// scanned, and nothing is kept but lengths (4 bytes a sample, where they
/// differ) and sides. Each is parsed, encoded and finished every time, unless
/// all of them are kept meanwhile.
///
/// A sample that a field rejects is a bad sample of its batch, and so is one
/// that its field would leave out: the loader's `on_bad` decides what is done.
class IndexedDataset final : public Dataset {
 public:
  /// Why these samples cannot be used without a scan; empty: they can.
  static std::string needs_scan(const IndexedOptions& options,
                                const Source& source);

  /// `source` was opened with `requests_of(options.fields)`. Throws
  /// Error(request), code data.needs_scan.
  IndexedDataset(IndexedOptions options, std::unique_ptr<Source> source);

  /// Adds what the rows would take in each tier to the plan, reckoned from a
  /// few that are read. Where they cannot be read it says nothing. Before the
  /// data set is shared.
  void predict_plan(const TableDatasetOptions& options, const Device& device);
  /// Keeps all rows in memory, by a scan beside the batches that begins with
  /// the first rows which are filled, and from the end of which on batches are
  /// made of these: the same. `options.open` opens the source. Of fields that
  /// the host finishes; before the data set is shared.
  void keep_beside(const TableDatasetOptions& options);
  /// Keeps rows in the larger form of their fields as they are read, from
  /// which on none of them is read or put into that form again: where there is
  /// room for them, batches are the same, and rows come again often enough.
  /// Reads a few rows to know. Before the data set is shared.
  void keep_larger(const TableDatasetOptions& options, const Device& device);
  /// Those rows; null before that end, or where they could not be kept.
  std::shared_ptr<const Dataset> kept() const {
    return scan_ == nullptr ? nullptr : scan_->rows()->rows();
  }

  /// SHA-256 over what the source is, how many rows it has, the fields'
  /// recipes and statistics, and the split, in hex: no row is read.
  const std::string& fingerprint() const override { return fingerprint_; }
  /// The same before there is a data set; of rows that are kept unchanged
  /// `stored`, without what only batches depend on.
  static std::string fingerprint_of(const IndexedOptions& options,
                                    const Source& source, bool stored = false);
  void select(Side side, std::span<SampleId> ranks) const override;
  void lengths(std::size_t varying, std::span<const SampleRange> ranges,
               std::span<std::int32_t> out) const override;
  Json key_of(SampleId sample) const override {
    return row_name(*source_, sample);
  }
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override;
  std::unique_ptr<ReadAhead> open_read_ahead(
      ReadAhead::Options options) const override;

 private:
  friend class IndexedFiller;
  friend class LargerFiller;
  void plan_readers();
  void bind();
  struct Sampled;
  Sampled sample(bool timed) const;
  TierPlan plan_of(const TableDatasetOptions& options, const Device& device,
                   const Sampled& sampled, std::size_t run_bytes) const;
  void decide_larger(const TableDatasetOptions& options, const Sampled& sampled,
                     const TierLimits& limits);
  void find_lengths();

  const IndexedOptions options_;
  const std::unique_ptr<Source> source_;
  const RowLayout layout_;
  BoundFields bound_;
  SideIndex train_{0}, val_{0};
  std::vector<std::vector<std::int32_t>> lengths_;  // of what differs in length
  std::vector<std::size_t> varying_;                // their fields
  std::string fingerprint_;
  std::unique_ptr<BackgroundScan> scan_;  // null: it keeps nothing
  std::unique_ptr<LargerRows> larger_;    // null: none are kept
};

/// The sides train and val of rows by position.
std::pair<SideIndex, SideIndex> sides_by_position(const Split& split,
                                                  const Source& source,
                                                  std::int64_t rows);

/// Statistics by field: those that were given, or what a field has that is not
/// fitted.
std::vector<Json> statistics_for(const IndexedOptions& options,
                                 const BoundFields& bound);

}  // namespace penstock
