#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/dataset/dataset_base.h"

namespace penstock {

/// Of the faults from `before` on: brings them into the order of rows, and
/// leaves the first of each row.
void keep_first_of_each(Faults& faults, std::size_t before);

/// Puts stored rows into a batch: fields that a kind finishes, and runs. One
/// per thread.
///
/// What goes into a batch as stored, in rows of equal size, is copied by
/// others, many rows at once: `copied()` says what. Of a field that a device
/// finishes these are its stored rows.
class RowFinisher {
 public:
  RowFinisher(const std::vector<Field>& fields, const RowLayout& layout,
              const DatasetFacts& facts, const FillerOptions& options);

  /// A part of the stored row.
  struct Copied {
    std::size_t output;  ///< its place in FillItem::to
    std::size_t offset;  ///< in the stored row
    std::size_t bytes;
  };
  const std::vector<Copied>& copied() const { return copied_; }
  /// Copies these, row by row; zeros where `rows[i]` is null.
  void copy(const FillItem& item, std::span<const std::byte* const> rows) const;
  /// True where nothing is left to do on the host beside copying.
  bool idle() const { return parts_.empty() && !inspects_; }
  /// True where nothing is left to queue.
  bool queues_nothing() const { return queued_.empty(); }

  /// A field's run of the i-th range's sample, or of a field that a device
  /// finishes what the host sees of it.
  using RunOf = std::function<std::span<const std::byte>(std::size_t field,
                                                         std::size_t i)>;
  /// `rows[i]` is the stored row of range i's sample; null for padding, of
  /// which zeros are written in tensors of equal size. Adds the ranges that a
  /// kind rejects now, ascending, each once.
  /// What a device finishes is seen by `head_of`, which else is `run_of`.
  void finish(const FillItem& item, std::span<const std::byte* const> rows,
              const RunOf& run_of, Faults& faults, const RunOf& head_of = {});
  /// Queues what a device finishes, from what was copied for the batch, and
  /// what the host reads of it, of the `kept` runs.
  void queue(const FillItem& batch, std::byte* scratch, Stream& stream,
             const RunOf& kept = {});
  /// The same where the device keeps the stored rows. `head_of`: what the host
  /// sees of the runs.
  void queue(const FillItem& batch, std::span<const std::byte* const> rows,
             const RunOf& run_of, const RunOf& head_of, std::byte* scratch,
             Stream& stream);

 private:
  /// A field that is not only copied.
  struct Part {
    std::size_t field;
    std::string name;
    std::size_t first_output, outputs;
    std::size_t offset;                       // of its tensors in a stored row
    std::size_t run_bytes;                    // of an element; 0: it has no run
    std::unique_ptr<FieldFinisher> finisher;  // null: the run is copied
    std::size_t tensor_bytes = 0;             // in a stored row
    // Where its whole stored rows are copied for the device; 0: they are not.
    std::size_t staged = 0;
    bool pads = false;   // it writes padding, too
    bool heads = false;  // a device finishes it, and the host sees heads
  };
  void stage(Part& part, const DeviceField& field, std::size_t place);
  void find_rows(const Part& part, const FillItem& item,
                 std::span<const std::byte* const> rows, const RunOf& run_of);
  void find_heads(const Part& part, const RunOf& head_of);
  void inspect(const Part& part, const FillItem& item, const RunOf& head_of,
               Faults& faults);
  void reject(const Part& part, Faults& faults) const;
  void find_places(const Part& part, const FillItem& item);
  void finish(const Part& part, const FillItem& item,
              std::span<const std::byte* const> rows, const RunOf& run_of,
              Faults& faults);
  void queue(const Part& part, const FillItem& batch, std::byte* scratch,
             Stream& stream);

  const std::uint64_t seed_;
  std::vector<Copied> copied_;
  std::vector<Part> parts_;   // of the host
  std::vector<Part> queued_;  // of the device
  bool inspects_ = false;     // one of these has heads
  // Of the rows that are there, scratch.
  std::vector<StoredRow> rows_;
  std::vector<std::size_t> at_;  // their places in the item
  std::vector<const std::byte*> stored_;
  std::vector<TensorPlace> places_;
  std::vector<std::vector<std::int64_t>> starts_;
  std::vector<std::vector<std::int32_t>> lengths_;
};

}  // namespace penstock
