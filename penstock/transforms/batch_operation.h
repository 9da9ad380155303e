#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/device/device.h"
#include "penstock/transforms/field_kind.h"

namespace penstock {

/// What the random numbers of an operation depend on: not on threads, tiers,
/// prefetch or restarts.
struct BatchKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  int rank = 0;
  std::uint64_t operation = 0;  ///< its place among those of the loader

  /// The same numbers on every rank.
  Random random(std::uint64_t draw) const {
    return {seed, static_cast<std::uint64_t>(epoch),
            static_cast<std::uint64_t>(step), mix64(mix64(draw) + operation)};
  }
  /// Others on each rank.
  Random random_of_rank(std::uint64_t draw) const {
    return random(mix64(draw) + 1 + static_cast<std::uint64_t>(rank));
  }
};

/// A rank's batch whose samples are finished.
struct OperationBatch {
  /// Row 0 of each tensor that the operation uses, then of each that it adds;
  /// the other rows follow.
  std::span<std::byte* const> tensors;
  std::int64_t rows = 0;
  /// The rows that hold a sample, ascending: neither padding nor masked.
  std::span<const std::int64_t> live;
  BatchKey key;
};

/// Memory that is kept from batch to batch.
struct OperationScratch {
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> numbers;
};

/// An operation over the tensors of one loader. Immutable, so thread-safe.
class BoundOperation {
 public:
  virtual ~BoundOperation() = default;
  /// Changes a batch in host memory: the definition of correct. Called by the
  /// thread that filled the last of its rows. What it throws is delivered in
  /// the batch's turn, and ends the loader.
  virtual void apply(const OperationBatch& batch,
                     OperationScratch& scratch) const = 0;
  /// Queues the same on a stream, for tensors in the device's memory.
  /// `scratch`, in that memory too, is as large as these tensors. As it is: on
  /// streams that can run code of the host.
  virtual void queue(const OperationBatch& batch, std::byte* scratch,
                     Stream& stream) const;

  /// The tensors that it reads or changes, by their place among those that it
  /// was bound to.
  const std::vector<std::size_t>& uses() const { return uses_; }
  /// Tensors of one row for each row of the batch, which it adds.
  const std::vector<Output>& adds() const { return adds_; }
  /// Of one row of all these.
  std::size_t row_bytes() const;

 protected:
  BoundOperation(const std::vector<Output>& outputs,
                 std::vector<std::size_t> uses, std::vector<Output> adds);

 private:
  const std::vector<std::size_t> uses_;
  const std::vector<Output> adds_;
  std::vector<std::size_t> bytes_;  // of a row of each of these
};

/// Something that is done to whole batches, after their samples are finished:
/// what mixes samples. An entry of a loader's `operations`, checked. Immutable,
/// so thread-safe.
///
/// It sees the rows of one rank, so what it gives depends on the number of
/// ranks. It does not depend on anything else that changes time alone.
class BatchOperation {
 public:
  virtual ~BatchOperation() = default;
  /// Throws Error(request) where it cannot be done to these tensors.
  virtual std::unique_ptr<BoundOperation> bind(
      const std::vector<Output>& outputs) const = 0;
  /// True where it can be queued on devices with such memory; elsewhere it runs
  /// on the host, and rows are not kept on the device.
  virtual bool queues_on(MemoryKind memory) const {
    return memory == MemoryKind::cpu || memory == MemoryKind::sim;
  }
  /// Everything that decides the bytes of a batch, defaults filled in.
  virtual Json recipe() const = 0;
};

/// The place of a tensor of rows of equal size. Throws Error(request), code
/// loader.operations, if none exists of this name.
std::size_t find_output(const std::vector<Output>& outputs,
                        const std::string& name, const std::string& path);
/// That error.
[[noreturn]] void refuse_operation(const std::string& path, std::string why,
                                   std::string next);

}  // namespace penstock
