#include "penstock/exec/meter.h"

namespace penstock {

StageNumbers StageMeter::numbers() const {
  auto time = [](const std::atomic<std::int64_t>& count) {
    return Nanoseconds(count.load(std::memory_order_relaxed));
  };
  return {.name = name_,
          .workers = workers_,
          .items = items_.load(std::memory_order_relaxed),
          .calls = calls_.load(std::memory_order_relaxed),
          .busy_wall = time(busy_wall_),
          .busy_cpu = time(busy_cpu_),
          .blocked_get = time(blocked_get_),
          .blocked_put = time(blocked_put_),
          .bytes = bytes_.load(std::memory_order_relaxed)};
}

}  // namespace penstock
