#pragma once

#include <cstdint>
#include <memory>

#include "penstock/loader/batch_operations.h"
#include "penstock/loader/fill.h"
#include "penstock/loader/planner.h"
#include "penstock/loader/slot.h"

namespace penstock {

/// What a loader works with, decided when it is opened. Immutable, so
/// thread-safe.
struct LoaderSetup {
  LoaderSetup(std::shared_ptr<const Dataset> of, const LoaderOptions& given,
              Device& on);
  LoaderSetup(const LoaderSetup&) = delete;
  LoaderSetup& operator=(const LoaderSetup&) = delete;

  const std::shared_ptr<const Dataset> dataset;
  const LoaderOptions options;
  Device& device;
  const Order order;
  const bool kept;      ///< a cache tier holds the rows: nothing is read
  const bool resident;  ///< the device gathers batches out of its own memory
  const bool queues;    ///< device_finishes()
  const std::shared_ptr<const BatchOperations> operations;
  const SlotMaker maker;
  const BatchLayout most;  ///< the size of the largest batch
  /// The consumer fills each batch itself, when it asks for one.
  const bool inlined;
  const int readers;  ///< I/O threads; 0: nothing is read ahead
  const BatchPlanner planner;

  bool on_host() const { return device.memory_kind() == MemoryKind::cpu; }
  /// Into how many items of work a batch is divided, at most.
  int parts_of(LoaderThreads threads) const;
  /// Plans the batch at `at` in the slot, in `parts` items or fewer.
  void plan(Position at, int parts, StageMeter& meter, Slot& slot) const;
  /// A slot with memory for any batch whose samples have equal sizes.
  std::shared_ptr<Slot> make_slot() const;
  std::unique_ptr<BatchFiller> make_filler(FillMeters& meters) const;
  /// The last stage of those that have done something: it waits where the
  /// consumer is slower.
  StageMeter& last_stage(FillMeters& meters) const;

 private:
  BatchLayout largest_batch() const;
  bool small() const;
};

}  // namespace penstock
