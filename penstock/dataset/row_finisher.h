#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "penstock/dataset/dataset_base.h"

namespace penstock {

/// Puts stored rows into a batch: fields that a kind finishes, and runs. One
/// per thread.
///
/// What is stored as a batch holds it, in rows of equal size, is copied by
/// others, many rows at once: `copied()` says what.
class RowFinisher {
 public:
  RowFinisher(const std::vector<Field>& fields, const RowLayout& layout,
              const FillerOptions& options);

  /// An output that is a tensor of the stored row.
  struct Copied {
    std::size_t output;  ///< its place among all outputs
    std::size_t offset;  ///< in the stored row
    std::size_t bytes;
  };
  const std::vector<Copied>& copied() const { return copied_; }
  /// Copies these, row by row; zeros where `rows[i]` is null.
  void copy(const FillItem& item, std::span<const std::byte* const> rows) const;
  /// True where nothing is left to do beside copying.
  bool idle() const { return parts_.empty(); }

  /// A field's run of the i-th range's sample.
  using RunOf = std::function<std::span<const std::byte>(std::size_t field,
                                                         std::size_t i)>;
  /// `rows[i]` is the stored row of range i's sample; null for padding, of
  /// which zeros are written in tensors of equal size.
  void finish(const FillItem& item, std::span<const std::byte* const> rows,
              const RunOf& run_of);

 private:
  /// A field that is not only copied.
  struct Part {
    std::size_t field, first_output, outputs;
    std::size_t offset;                       // of its tensors in a stored row
    std::size_t run_bytes;                    // of an element; 0: it has no run
    std::unique_ptr<FieldFinisher> finisher;  // null: the run is copied
  };
  void finish(const Part& part, const FillItem& item,
              std::span<const std::byte* const> rows, const RunOf& run_of);
  void call(const Part& part, const FillItem& item);

  const std::uint64_t seed_;
  std::vector<Copied> copied_;
  std::vector<Part> parts_;
  // Of the rows that are there, scratch.
  std::vector<StoredRow> rows_;
  std::vector<std::size_t> at_;  // their places in the item
  std::vector<TensorPlace> places_;
  std::vector<std::vector<std::int64_t>> starts_;
  std::vector<std::vector<std::int32_t>> lengths_;
};

/// True where a batch holds fields as they are stored, in rows of equal size.
bool only_copied(const std::vector<Field>& fields);

}  // namespace penstock
