#include "penstock/loader/slot_supply.h"

#include <bit>
#include <string>
#include <utility>

namespace penstock {

void SlotSupply::add() {
  std::shared_ptr<Slot> slot = setup_.make_slot();
  slot->ring = ring_;
  ring_->give_back(std::move(slot));
  ++slots_;
}

void SlotSupply::grow_to(int slots) {
  while (slots_ < slots) add();
}

void SlotSupply::keep_one_free() {
  if (ring_->lent() < slots_) return;
  if (std::has_single_bit(++grown_))  // 1, 2, 4, ...: not for every batch
    log(LogLevel::warning,
        "the loop holds " + std::to_string(slots_) +
            " batches at once, so the ring of batches grows by one; destroy "
            "a batch once its step is queued, or raise 'loader.prefetch'");
  add();
}

std::shared_ptr<Slot> SlotSupply::open(bool waits) {
  const Nanoseconds asked = wall_clock().now();
  std::shared_ptr<Slot> slot = waits ? ring_->take() : ring_->try_take();
  if (slot != nullptr) slot->settle();
  setup_.last_stage(meters_).add_blocked_put(wall_clock().now() - asked);
  return slot;
}

}  // namespace penstock
