#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// clang checks which mutex guards which member (-Wthread-safety).
#if defined(__clang__)
#define PENSTOCK_ANNOTATE(x) __attribute__((x))
#else
#define PENSTOCK_ANNOTATE(x)
#endif
#define PENSTOCK_GUARDED_BY(m) PENSTOCK_ANNOTATE(guarded_by(m))
#define PENSTOCK_REQUIRES(m) PENSTOCK_ANNOTATE(requires_capability(m))

namespace penstock {

/// std::mutex with the annotations that the standard one lacks.
class PENSTOCK_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() PENSTOCK_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() PENSTOCK_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for a scope; a Condition can wait on it.
class PENSTOCK_ANNOTATE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) PENSTOCK_ANNOTATE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~Lock() PENSTOCK_ANNOTATE(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

/// Unlocks a Mutex for a scope, and locks it again however the scope ends.
class PENSTOCK_ANNOTATE(scoped_lockable) Unlock {
 public:
  explicit Unlock(Mutex& mutex) PENSTOCK_ANNOTATE(release_capability(mutex))
      : mutex_(mutex) {
    mutex_.unlock();
  }
  ~Unlock() PENSTOCK_ANNOTATE(release_capability()) { mutex_.lock(); }
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits on our Mutex. Loop on the condition around wait(); the mutex is held
/// again when wait() returns.
class Condition {
 public:
  void wait(Mutex& mutex) PENSTOCK_REQUIRES(mutex) {
    // wait() of libstdc++ is a new function since GCC 12: a program that calls
    // it would not start on systems before that.
    wait_until(mutex, std::chrono::steady_clock::time_point::max());
  }
  /// The same until `end` at the latest; false when that has passed.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point end)
      PENSTOCK_REQUIRES(mutex) {
    return condition_.wait_until(mutex, end) == std::cv_status::no_timeout;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace penstock
