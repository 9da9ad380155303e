#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "penstock/sources/test_reading.h"

namespace penstock {

/// A flag that is set a fifth of a second after begin(), as by a signal.
class SoonStopped {
 public:
  StopFlag flag() const { return &flag_; }
  void begin() {
    thread_ = std::jthread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      flag_ = true;
    });
  }

 private:
  std::atomic<bool> flag_{false};
  std::jthread thread_;
};

/// Whether `act` ends by the error of a stop, within so many seconds.
inline bool stops_within(double seconds_at_most,
                         const std::function<void()>& act) {
  auto start = std::chrono::steady_clock::now();
  bool stopped = is_stop(error_of(act));
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return stopped && took.count() < seconds_at_most;
}

}  // namespace penstock
