#pragma once

#include <cstdint>
#include <deque>

#include "penstock/base/clock.h"

namespace penstock::cuda {

/// Converts a device's clock to the host's.
///
/// The two drift apart, so now and then both are read at the same moment. In
/// between, time continues at nearly the same rate: a difference is corrected
/// by a slightly different rate over kInterval, and not by a jump. So two
/// events never change their order, and a span of time is wrong by at most a
/// thousandth. Beyond kMostMadeUp it does jump: then one of the clocks has
/// stood still, or they were not read for long.
///
/// Not thread-safe. The origin of the device's time is arbitrary.
class TimeMap {
 public:
  static constexpr Nanoseconds kMostMadeUp = std::chrono::milliseconds(10);
  /// Over how long a difference is made up for: about what lies between
  /// readings.
  static constexpr Nanoseconds kInterval = std::chrono::seconds(1);

  /// Both clocks at one moment. The first time, and again, in order.
  void read(Nanoseconds device, Nanoseconds host);
  /// The host's time at a device's time; at least one reading came before.
  Nanoseconds host_time(Nanoseconds device) const;

 private:
  struct Piece {
    Nanoseconds device, host;  // where it starts
    double rate;               // of the host's time to the device's
    Nanoseconds at(Nanoseconds time) const;
  };
  std::deque<Piece> pieces_;  // the oldest first
};

}  // namespace penstock::cuda
