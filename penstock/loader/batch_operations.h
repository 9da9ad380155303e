#pragma once

#include <memory>
#include <span>
#include <vector>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/options.h"

namespace penstock {

struct Slot;

/// The operations of a loader's options that are for its side, bound to the
/// tensors of its batches. Immutable, so thread-safe; what is queued looks at
/// it.
class BatchOperations {
 public:
  /// Throws Error(request), code loader.operations, where one of them cannot be
  /// done to these outputs.
  BatchOperations(const LoaderOptions& options, const DatasetFacts& facts);

  bool empty() const { return bound_.empty(); }
  /// All tensors of a batch: see batch_tensors().
  const std::vector<BatchTensor>& tensors() const { return tensors_; }
  /// Of a batch that is changed on the device.
  std::size_t scratch_bytes(std::int64_t rows) const;
  /// Changes a batch in host memory, once all its rows are filled.
  void apply(const Slot& slot, OperationScratch& scratch) const;
  /// Queues that for a batch that is filled in the device's memory.
  void queue(const Slot& slot, Stream& stream) const;

 private:
  struct Bound {
    std::unique_ptr<BoundOperation> operation;
    std::vector<std::size_t> tensors;  // of a batch: what it uses, then adds
  };
  /// Calls `change` with each operation and its batch.
  template <class Place, class Change>
  void each(const Slot& slot, Place place_of, Change change) const;

  const std::uint64_t seed_;
  const int rank_;
  std::vector<Bound> bound_;
  std::vector<BatchTensor> tensors_;
};

/// True where all these operations can be queued on devices with such memory.
bool queue_on(const std::vector<Operation>& operations, MemoryKind memory);

}  // namespace penstock
