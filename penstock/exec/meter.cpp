#include "penstock/exec/meter.h"

#include <algorithm>

namespace penstock {

std::optional<Nanoseconds> StageMeter::Blocked::value() const {
  if (!measured_.load(std::memory_order_relaxed)) return std::nullopt;
  return Nanoseconds(time_.load(std::memory_order_relaxed));
}

ThreadSightings StageMeter::seen() const {
  Lock lock(seeing_);
  return seen_;
}

// The counts are relaxed atomics that are read one after the other while
// workers add to them: each is right, but they need not be of one moment. So
// the time on the processor could exceed the time on the wall, and is limited
// to it.
StageNumbers StageMeter::numbers() const {
  auto time = [](const std::atomic<std::int64_t>& count) {
    return Nanoseconds(count.load(std::memory_order_relaxed));
  };
  return {.name = name_,
          .work = work_,
          .workers = workers_,
          .pool = pool_,
          .items = items_.load(std::memory_order_relaxed),
          .calls = calls_.load(std::memory_order_relaxed),
          .busy_wall = time(busy_wall_),
          .busy_cpu = std::min(time(busy_cpu_), time(busy_wall_)),
          .blocked_get = blocked_get_.value(),
          .blocked_put = blocked_put_.value(),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .times = times_.read(),
          .seen = takes_long() ? seen() : ThreadSightings{}};
}

}  // namespace penstock
