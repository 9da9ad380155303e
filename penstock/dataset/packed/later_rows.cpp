#include "penstock/dataset/packed/later_rows.h"

#include <chrono>
#include <utility>

namespace penstock {

std::shared_ptr<const Dataset> LaterRows::rows() const {
  return there_.load(std::memory_order_acquire) ? rows_ : nullptr;
}

void LaterRows::wait(StopFlag stop) const {
  constexpr std::chrono::milliseconds kAskAgain{50};
  Lock lock(mutex_);
  while (!ended_ && !stop.is_set())  // which wakes nobody
    changed_.wait_until(mutex_, std::chrono::steady_clock::now() + kAskAgain);
}

void LaterRows::set(std::shared_ptr<const Dataset> rows) {
  rows_ = std::move(rows);
  there_.store(true, std::memory_order_release);
}

void LaterRows::end() {
  Lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace penstock
