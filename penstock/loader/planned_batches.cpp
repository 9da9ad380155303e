#include "penstock/loader/planned_batches.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock {

PlannedBatches::PlannedBatches(const LoaderSetup& setup, SlotSupply& slots,
                               FillMeters& meters, BatchDelivery& delivery)
    : setup_(setup),
      slots_(slots),
      meters_(meters),
      delivery_(delivery),
      most_parts_(setup.parts_of(
          {setup.options.workers, setup.readers, setup.options.prefetch})),
      next_(setup.options.start),
      prefetch_(setup.options.prefetch) {}

bool PlannedBatches::no_more() const {
  return setup_.options.batches >= 0 && planned_ == setup_.options.batches;
}

bool PlannedBatches::far_enough() const {
  return planned_ - delivered_ >= prefetch_;
}

// A batch that is read ahead is planned as early as possible, any other when
// the batch before it has been handed out to the workers.
bool PlannedBatches::may_plan() const {
  return !planning_ && !ended_ && !no_more() && !far_enough() &&
         (items_.empty() || reads_ != nullptr);
}

std::optional<WorkItem> PlannedBatches::ready_item() {
  std::optional<WorkItem> item = items_.take_ready();
  if (item && items_.empty()) {
    if (no_more() || ended_)
      changed_.notify_all();  // nothing is left to do
    else if (may_plan())
      changed_.notify_one();
  }
  return item;
}

std::optional<WorkItem> PlannedBatches::take(Headcount& workers) {
  Lock lock(mutex_);
  for (bool no_slot = false;;) {
    if (workers.leaves()) {
      changed_
          .notify_one();  // another worker takes what this one was woken for
      return std::nullopt;
    }
    if (may_plan() && (items_.empty() || !no_slot)) {
      no_slot = !begin_batch();
      continue;
    }
    if (std::optional<WorkItem> item = ready_item()) return item;
    if (items_.empty() && (ended_ || no_more())) return std::nullopt;
    wait_for_change();
    no_slot = false;
  }
}

void PlannedBatches::wait_for_change() {
  const bool for_rows = !items_.empty(), for_room = far_enough();
  const Nanoseconds asked = wall_clock().now();
  changed_.wait(mutex_);
  const Nanoseconds waited = wall_clock().now() - asked;
  if (for_rows)
    meters_.prepare.add_blocked_get(waited);
  else if (for_room)
    setup_.last_stage(meters_).add_blocked_put(waited);
}

// Waits for a free slot where there is nothing else to do. False where there is
// other work and no slot is free.
bool PlannedBatches::begin_batch() {
  planning_ = true;
  const Position at = next_;
  const int parts = parts_;
  const bool waits = items_.empty();
  std::shared_ptr<Slot> slot;
  std::vector<WorkItem> begun = std::move(spare_);
  std::exception_ptr error;
  {
    Unlock unlock(mutex_);
    try {
      slot = slots_.open(waits);
      if (slot != nullptr) {
        setup_.plan(at, parts, meters_.plan, *slot);
        setup_.maker.carve(*slot);
        append_items(slot, reads_, begun);
      }
    } catch (...) {
      error = named_error(std::current_exception(), "loader");
    }
  }
  planning_ = false;
  if (error) {
    end_planning(std::move(error));
  } else if (slot != nullptr && !ended_) {
    // The worker that planned a batch takes its first item.
    if (begun.size() > 1 || reads_ != nullptr) changed_.notify_all();
    slot->number = planned_;  // counted once there was memory for its items
    items_.add(begun);
    ++planned_;
    next_ = next_position(setup_.order, next_);
  }
  begun.clear();  // where they are not to be filled
  spare_ = std::move(begun);
  return slot != nullptr || ended_;
}

std::optional<WorkItem> PlannedBatches::take_of_next_batch() {
  Lock lock(mutex_);
  if (items_.empty() && planned_ == delivered_ && may_plan()) begin_batch();
  if (items_.empty() || items_.first_batch() != delivered_) return std::nullopt;
  return ready_item();
}

bool PlannedBatches::filled(const WorkItem& item,
                            std::vector<RejectedSample> rejected) {
  Slot& slot = *item.slot;
  Lock lock(mutex_);
  std::ranges::move(rejected, std::back_inserter(slot.rejected));
  slot.rows_left -= item.end - item.begin;
  return slot.rows_left == 0;
}

void PlannedBatches::delivered() {
  Lock lock(mutex_);
  ++delivered_;
  if (may_plan()) changed_.notify_one();
}

std::int64_t PlannedBatches::count_delivered() {
  Lock lock(mutex_);
  return delivered_;
}

void PlannedBatches::set_ahead(std::int64_t prefetch, int parts) {
  Lock lock(mutex_);
  prefetch_ = prefetch;
  parts_ = std::min(most_parts_, parts);
  changed_.notify_all();
}

void PlannedBatches::rows_arrived() {
  Lock lock(mutex_);
  changed_.notify_one();
}

void PlannedBatches::end(std::exception_ptr error) {
  Lock lock(mutex_);
  end_planning(std::move(error));
}

void PlannedBatches::end_planning(std::exception_ptr error) {
  ended_ = true;
  changed_.notify_all();
  slots_.close();
  if (error) delivery_.put_error(planned_, std::move(error));
}

void PlannedBatches::abandon(std::int64_t number) {
  std::optional<WorkItem> left;
  do {
    left.reset();  // without the lock
    Lock lock(mutex_);
    end_planning(nullptr);
    left = items_.take_last_from(number);
  } while (left);
}

}  // namespace penstock
