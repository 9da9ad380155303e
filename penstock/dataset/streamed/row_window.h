#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/dataset/dataset_base.h"
#include "penstock/dataset/row_finisher.h"
#include "penstock/dataset/table/parsed_rows.h"

namespace penstock {

/// Rows of one block of a source in their stored form. Immutable once it is
/// shared.
struct PreparedBlock {
  KeyList keys;  ///< of the rows that can be used
  std::vector<std::byte> rows =
      {};                         ///< their tensors, RowLayout::row_bytes each
  std::vector<Values> runs = {};  ///< by field; empty where it has no run
  std::vector<std::int64_t> kept = {};  ///< by row: its place in `runs`
  std::int64_t too_short = 0;           ///< rows left out by a field's own rule
  std::int64_t bad_rows = 0;            ///< rows that cannot be used
  std::vector<BadRow> bad = {};         ///< these

  std::int64_t count() const { return std::ssize(kept); }
  std::size_t bytes() const;
};

/// Consecutive rows of a source as a data set. Sample i is row i of the window,
/// and all rows are on every side. The host finishes them.
class RowWindow final : public Dataset {
 public:
  /// Where a row of the window is.
  struct Place {
    std::uint32_t block;
    std::uint32_t row;
  };
  RowWindow(std::shared_ptr<const FittedFields> fields, RowLayout layout,
            std::vector<std::shared_ptr<const PreparedBlock>> blocks,
            std::vector<Place> rows, std::int64_t first);

  /// The number of its first row among all rows of the stream.
  std::int64_t first() const { return first_; }

  const std::string& fingerprint() const override { return fingerprint_; }
  void select(Side, std::span<SampleId>) const override {}
  Json key_of(SampleId sample) const override;
  void lengths(std::size_t varying, std::span<const SampleRange> ranges,
               std::span<std::int32_t> out) const override;
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override;

  /// Appends the key of a sample to a list of the source's keys.
  void append_key(SampleId sample, KeyList& to) const;

 private:
  friend class WindowFiller;
  const PreparedBlock& block_of(SampleId sample) const {
    return *blocks_[rows_[static_cast<std::size_t>(sample)].block];
  }
  const std::byte* row(SampleId sample) const;
  std::span<const std::byte> run(std::size_t field, SampleId sample) const;
  void find_lengths();

  const RowLayout layout_;
  const std::vector<std::shared_ptr<const PreparedBlock>> blocks_;
  const std::vector<Place> rows_;
  const std::int64_t first_;
  const std::string fingerprint_;
  std::vector<std::size_t> varying_;  // the field of each output that varies
};

}  // namespace penstock
