#pragma once

#include <memory>

#include "penstock/loader/loader_setup.h"

namespace penstock {

/// The slots of a loader. Any thread opens one; the consumer adds, lends and
/// counts them.
class SlotSupply {
 public:
  SlotSupply(const LoaderSetup& setup, FillMeters& meters)
      : setup_(setup), meters_(meters) {}

  /// Makes slots until there are so many.
  void grow_to(int slots);
  /// Adds a slot where the consumer holds all of them: there would never be
  /// another batch.
  void keep_one_free();
  /// A free slot whose readers have finished with it. Null when the supply is
  /// closed, and without a wait where none is free and `waits` is false.
  std::shared_ptr<Slot> open(bool waits = true);
  /// The slot goes to the consumer, and comes back when its batch is destroyed.
  void lend(Slot& slot) { ring_->lend(slot); }
  /// Wakes those who wait for a slot.
  void close() { ring_->close(); }

 private:
  void add();

  const LoaderSetup& setup_;
  FillMeters& meters_;
  const std::shared_ptr<SlotRing> ring_ = std::make_shared<SlotRing>();
  int slots_ = 0;
  unsigned grown_ = 0;  // times that the consumer held all slots
};

}  // namespace penstock
