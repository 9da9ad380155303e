#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "penstock/device/device.h"

namespace penstock {

/// Copies the losses of steps to the host without waiting for the steps: each
/// is copied to pinned memory after its step, and returned when that is done.
///
/// One thread. Holds a fixed number in flight: adding one more waits for the
/// oldest. Copies that were queued must be done before it is destroyed.
class PendingLosses {
 public:
  static constexpr std::size_t kMostOnTheirWay = 64;

  explicit PendingLosses(Device& device);

  /// Queues the copy of a float32 that lies on the device.
  void add(const std::byte* loss, Stream& stream);
  /// The losses that were not returned before, in the order of add(): all that
  /// are known, or with `wait` all.
  std::vector<double> take(bool wait);

 private:
  void read_oldest();

  Buffer memory_;
  std::size_t next_ = 0;            // place in memory_, from 0
  std::deque<Event> on_their_way_;  // the oldest first
  std::vector<double> known_;
};

}  // namespace penstock
