#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace penstock {

using Nanoseconds = std::chrono::nanoseconds;

inline double seconds(Nanoseconds time) {
  return 1e-9 * static_cast<double>(time.count());
}
inline Nanoseconds from_seconds(double time) {
  return Nanoseconds(static_cast<std::int64_t>(time * 1e9));
}

/// A time of the system as one number: of a file, in ns since the epoch.
constexpr std::int64_t nanoseconds_of(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Where time comes from. Thread-safe. The origin is arbitrary: only
/// differences mean something.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds now() const = 0;
  /// Returns at once when `time` has passed.
  virtual void sleep_until(Nanoseconds time) = 0;
};

/// The machine's monotonic clock. Lives as long as the program.
Clock& wall_clock();

/// Time that passes only when a thread sleeps, for tests: sleeping moves it
/// forward and returns at once.
class VirtualClock : public Clock {
 public:
  Nanoseconds now() const override { return Nanoseconds(now_.load()); }
  void sleep_until(Nanoseconds time) override;

 private:
  std::atomic<std::int64_t> now_{0};  // only ever raised, by compare-exchange
};

/// CPU time of the calling thread.
Nanoseconds thread_cpu_time();

/// "2026-11-21T14:05:09.123Z".
std::string utc_text(std::chrono::system_clock::time_point time);

}  // namespace penstock
