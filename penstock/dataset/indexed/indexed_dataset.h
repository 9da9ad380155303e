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

struct LargerPlan;
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
  /// Why decide() has them read by position, for DatasetFacts; null: it was not
  /// asked.
  std::shared_ptr<const PreparationPlan> preparation = {};
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
                                const BoundSource& source);

  /// `source` was opened with `requests_of(options.fields)`. Throws
  /// Error(request), code data.needs_scan.
  IndexedDataset(IndexedOptions options, std::unique_ptr<Source> source);
  /// The same of a source that its fields are bound to.
  IndexedDataset(IndexedOptions options, BoundSource source);

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

  /// As named_fingerprint() has it.
  const std::string& fingerprint() const override { return fingerprint_; }
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
  struct Sampled;
  Sampled sample(bool timed) const;
  void make_larger(const LargerPlan& plan);
  void find_lengths();

  const IndexedOptions options_;
  const std::shared_ptr<Source> source_;
  const BoundFields bound_;
  const RowLayout layout_;
  SideIndexes sides_;
  std::vector<std::vector<std::int32_t>> lengths_;  // of what differs in length
  std::vector<std::size_t> varying_;                // their fields
  std::string fingerprint_;
  std::unique_ptr<BackgroundScan> scan_;  // null: it keeps nothing
  std::unique_ptr<LargerRows> larger_;    // null: none are kept
};

/// The sides of rows by position.
SideIndexes sides_by_position(const Split& split, const Source& source,
                              std::int64_t rows);

}  // namespace penstock
