#include "penstock/trainer/pending_losses.h"

#include <cstring>
#include <utility>

namespace penstock {

PendingLosses::PendingLosses(Device& device)
    : memory_(device.allocate_pinned(kMostOnTheirWay * sizeof(float))) {}

void PendingLosses::add(const std::byte* loss, Stream& stream) {
  if (on_their_way_.size() == kMostOnTheirWay) read_oldest();
  stream.copy(memory_.data() + next_ * sizeof(float), loss, sizeof(float));
  on_their_way_.push_back(stream.record_untimed());
  next_ = (next_ + 1) % kMostOnTheirWay;
}

// `next_` is the place of the next copy, so the oldest one in flight is as many
// places before it as there are events: no place is written again before the
// host has read it.
void PendingLosses::read_oldest() {
  on_their_way_.front().wait();
  std::size_t place =
      (next_ + kMostOnTheirWay - on_their_way_.size()) % kMostOnTheirWay;
  float loss = 0;
  std::memcpy(&loss, memory_.data() + place * sizeof(float), sizeof(loss));
  known_.push_back(loss);
  on_their_way_.pop_front();
}

std::vector<double> PendingLosses::take(bool wait) {
  while (!on_their_way_.empty() && (wait || on_their_way_.front().passed()))
    read_oldest();
  return std::exchange(known_, {});
}

}  // namespace penstock
