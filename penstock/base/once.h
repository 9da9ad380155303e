#pragma once

#include <atomic>
#include <utility>

#include "penstock/base/sync.h"

namespace penstock {

/// What is done once, by the first of the threads that want it; the others
/// wait. Where it throws it has not been done, and the next one tries again.
///
/// Not std::call_once: an exception on its way through pthread_once() makes
/// glibc load a library, and end the program where there is no memory for it.
class Once {
 public:
  template <class Work>
  void call(Work&& work) {
    // Released when all that the work has written is there.
    if (done_.load(std::memory_order_acquire)) return;
    Lock lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    std::forward<Work>(work)();
    done_.store(true, std::memory_order_release);
  }

 private:
  Mutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace penstock
