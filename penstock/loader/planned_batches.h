#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/loader/batch_delivery.h"
#include "penstock/loader/slot_supply.h"
#include "penstock/loader/work_items.h"

namespace penstock {

/// Plans batches ahead, and gives out the items of work that fill them.
/// Thread-safe.
///
/// 1. Workers take items of the earliest batch that is not yet complete, so
///    that all of them fill it where it has items enough.
/// 2. Where rows are read ahead, I/O threads begin to read an item when its
///    batch is planned, and a worker takes the earliest item whose rows have
///    arrived: it never waits for the source.
/// 3. A batch gets its number when its plan is complete. An error outside any
///    item has the number of the first batch that is not planned. From then on
///    no batch is planned, items of that batch and later ones are dropped, and
///    those before it are completed: the consumer gets the error after the same
///    batches, whatever the number of workers.
/// 4. One thread plans at a time (`planning_`) and holds no lock meanwhile.
/// 5. Lock order: `mutex_`, then the slots' or the delivery's own. No data set
///    is called, no event waited for and no batch filled under `mutex_`.
class PlannedBatches {
 public:
  PlannedBatches(const LoaderSetup& setup, SlotSupply& slots,
                 FillMeters& meters, BatchDelivery& delivery);

  /// Rows are read ahead by `reads`, which must outlive this. Called before the
  /// first item is taken.
  void read_by(ReadAhead& reads) { reads_ = &reads; }

  /// The next item for a worker; plans where that comes first. Nullopt where
  /// nothing is left to do, or where this worker is one too many.
  std::optional<WorkItem> take(Headcount& workers);
  /// An item of the batch that the consumer waits for; nullopt where all of
  /// them are taken.
  std::optional<WorkItem> take_of_next_batch();
  /// The rows of an item are in their slot. True for the last item of a batch.
  bool filled(const WorkItem& item, std::vector<RejectedSample> rejected);

  /// A batch went to the consumer.
  void delivered();
  std::int64_t count_delivered();
  /// So many batches are planned ahead from here on, in `parts` items each or
  /// fewer, and never more than at first: those would mean more statements.
  void set_ahead(std::int64_t prefetch, int parts);
  /// The rows of an item that was read ahead are there.
  void rows_arrived();

  /// Plans no more. The consumer gets `error`, which may be null, after the
  /// batches that are planned.
  void end(std::exception_ptr error);
  /// Plans no more, and drops the items of batch `number` and later ones.
  void abandon(std::int64_t number);

 private:
  bool no_more() const PENSTOCK_REQUIRES(mutex_);
  bool far_enough() const PENSTOCK_REQUIRES(mutex_);
  bool may_plan() const PENSTOCK_REQUIRES(mutex_);
  std::optional<WorkItem> ready_item() PENSTOCK_REQUIRES(mutex_);
  void wait_for_change() PENSTOCK_REQUIRES(mutex_);
  bool begin_batch() PENSTOCK_REQUIRES(mutex_);
  void end_planning(std::exception_ptr error) PENSTOCK_REQUIRES(mutex_);

  const LoaderSetup& setup_;
  SlotSupply& slots_;
  FillMeters& meters_;
  BatchDelivery& delivery_;
  ReadAhead* reads_ = nullptr;
  const int most_parts_;

  Mutex mutex_;
  Condition changed_;
  Position next_ PENSTOCK_GUARDED_BY(mutex_);  // to be planned
  int parts_ PENSTOCK_GUARDED_BY(mutex_) = most_parts_;
  std::int64_t prefetch_ PENSTOCK_GUARDED_BY(mutex_);
  std::int64_t planned_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::int64_t delivered_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  WorkItems items_ PENSTOCK_GUARDED_BY(mutex_);
  bool planning_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool ended_ PENSTOCK_GUARDED_BY(mutex_) = false;
  // Empty: memory for the items of the next batch.
  std::vector<WorkItem> spare_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock
