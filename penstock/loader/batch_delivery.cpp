#include "penstock/loader/batch_delivery.h"

#include <algorithm>
#include <optional>

namespace penstock {

void BatchDelivery::add_wait(Nanoseconds asked, bool out_of_order) {
  const Nanoseconds waited = wall_clock().now() - asked;
  meter_.add_blocked_get(waited);
  if (out_of_order) wait_order_.fetch_add(waited.count());
}

bool BatchDelivery::ready_within(Nanoseconds time) {
  const Nanoseconds asked = wall_clock().now();
  const bool out_of_order = complete_.misses_next();
  const bool ready = complete_.ready_within(time);
  add_wait(asked, out_of_order);
  return ready;
}

std::shared_ptr<Slot> BatchDelivery::take(const std::function<void()>& help) {
  const Nanoseconds asked = wall_clock().now();
  const bool out_of_order = complete_.misses_next();
  help();
  std::optional<std::shared_ptr<Slot>> taken = complete_.take();
  if (!taken) return nullptr;
  add_wait(asked, out_of_order);
  return std::move(*taken);
}

void BatchDelivery::count(Slot& slot, const Order& order) {
  if (!slot.rejected.empty() || bad_.any()) {
    std::ranges::sort(slot.rejected, {}, &RejectedSample::row);
    bad_.add(slot);
  }
  meter_.add_items(std::ssize(slot.ids), 0);
  position_ = next_position(order, slot.plan.at);
}

}  // namespace penstock
