#pragma once

#include <memory>
#include <span>
#include <vector>

#include "penstock/dataset/filler.h"
#include "penstock/dataset/read_ahead.h"
#include "penstock/dataset/table/parsed_rows.h"

namespace penstock {

/// Samples of a source by position, read, parsed and encoded, whenever they are
/// asked for. One per thread.
class IndexedRows {
 public:
  /// Where they come from, and what is made of them; outlives this.
  struct Origin {
    Source& source;
    const BoundFields& bound;
    const std::vector<Field>& fields;
    const RowLayout& layout;
    const std::vector<Json>& statistics;  ///< by field
  };

  /// `meters` count the reading, parsing and encoding; with `per_sample` each
  /// sample is read by itself.
  IndexedRows(const Origin& of, FillMeters& meters, bool per_sample);

  /// The samples of `ids`, in any order; -1 means no sample. Those that cannot
  /// be used are rejected, by their place in `ids`. `read`: what I/O threads
  /// have read of them; null: nothing. Throws what reading throws.
  void prepare(std::span<const SampleId> ids, ItemRead* read, Faults& faults);

  // Of what was prepared last, by place in its `ids`.
  /// -1 if none exists, or it was rejected.
  const std::vector<SampleId>& ids() const { return ids_; }
  /// The stored row; null if none exists.
  const std::byte* row(std::size_t at) const {
    return ids_[at] < 0 ? nullptr
                        : rows_.data() + static_cast<std::size_t>(number_[at]) *
                                             of_.layout.row_bytes;
  }
  /// A field's run, where there is a row.
  std::span<const std::byte> run(std::size_t field, std::size_t at) const {
    return runs_[field].row(number_[at]);
  }
  /// Puts the faults of `ids` in the order of their rows, and adds to each,
  /// where its sample lies in a named part, such as a file, the part and which
  /// of its rows it is.
  void name(std::span<const SampleId> ids, Faults& faults) const;

 private:
  void read(std::span<const SampleId> ids, ItemRead* ahead);
  void parse();
  void find_faults();
  /// The rows that nothing rejects, into `rows_` and `runs_`.
  void encode(std::span<const SampleId> ids, Faults& faults);

  const Origin of_;
  FillMeters& meters_;
  const bool per_sample_;
  const bool gaps_;  // of a stored row, which are zeros
  SampleReader reader_;
  std::vector<std::unique_ptr<FieldParser>> parsers_;  // by field
  RowEncoder encoder_;
  // Of the read at hand.
  std::vector<std::size_t> places_;    // in reading order
  std::span<const std::size_t> part_;  // of these, those of one read
  std::vector<std::int64_t> positions_;
  Block block_;
  std::vector<Values> values_;          // by field
  std::vector<Faults> faults_;          // by field
  std::vector<RowFault> problems_;      // of the reader
  std::vector<const RowFault*> fault_;  // by row of the block; null: good
  std::vector<std::int64_t> good_;      // rows of the block
  Faults encoded_;
  // Of all that was asked for.
  Bytes rows_;                        // stored, in the order in which they came
  std::vector<Values> runs_;          // by field
  std::int64_t stored_rows_ = 0;      // in both
  std::vector<std::int64_t> number_;  // by place: of its stored row
  std::vector<SampleId> ids_;
};

}  // namespace penstock
