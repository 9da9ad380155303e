#pragma once

#include <memory>
#include <span>
#include <vector>

#include "penstock/dataset/indexed_dataset.h"
#include "penstock/dataset/row_finisher.h"

namespace penstock {

/// Reads samples by position, and parses, encodes and finishes them.
class IndexedFiller final : public SlotFiller {
 public:
  IndexedFiller(const IndexedDataset& dataset, FillMeters& meters,
                const FillerOptions& options);

  void fill(const FillItem& item, Stream& stream, Faults& faults) override;
  void queue(const FillItem& batch, std::byte* scratch,
             Stream& stream) override;

 private:
  void read(const FillItem& item);
  void parse();
  void find_faults();
  /// The rows that nothing rejects, into `rows_` and `runs_`.
  void encode(const FillItem& item, Faults& faults);
  void check_lengths(const FillItem& item) const;
  void finish(const FillItem& item, Faults& faults);
  void name(SampleId sample, RowFault& fault) const;

  const IndexedDataset& dataset_;
  FillMeters& meters_;
  const bool per_sample_;
  SampleReader reader_;
  std::vector<std::unique_ptr<FieldParser>> parsers_;  // by field
  RowEncoder encoder_;
  RowFinisher finisher_;
  // Of the read at hand.
  std::vector<std::size_t> ranges_;    // in reading order
  std::span<const std::size_t> part_;  // of these, those of one read
  std::vector<std::int64_t> positions_;
  Block block_;
  std::vector<Values> values_;          // by field
  std::vector<Faults> faults_;          // by field
  std::vector<RowFault> problems_;      // of the reader
  std::vector<const RowFault*> fault_;  // by row of the block; null: good
  std::vector<std::int64_t> good_;      // rows of the block
  Faults encoded_;
  // Of the item.
  std::vector<std::byte> rows_;       // stored, in the order in which they came
  std::vector<Values> runs_;          // by field
  std::int64_t stored_rows_ = 0;      // in both
  std::vector<std::int64_t> number_;  // by range: of its stored row
  std::vector<SampleId> ids_;         // by range; -1: padding, or rejected
  std::vector<const std::byte*> stored_;  // by range; null: the same
};

}  // namespace penstock
