#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/sync.h"
#include "penstock/device/cuda/time_map.h"
#include "penstock/device/device.h"

namespace penstock::cuda {

class EventPool;

/// A cudaEvent_t out of a pool, to which it returns.
class PooledEvent {
 public:
  PooledEvent(EventPool& pool, cudaEvent_t event, bool timed)
      : pool_(&pool), event_(event), timed_(timed) {}
  PooledEvent(PooledEvent&& other) noexcept;
  PooledEvent& operator=(PooledEvent&&) = delete;
  ~PooledEvent();

  cudaEvent_t get() const { return event_; }
  bool timed() const { return timed_; }

 private:
  EventPool* pool_;  // null: moved from
  cudaEvent_t event_;
  bool timed_;
};

/// Events of a device that are reused: making one costs more than recording it.
/// A thread that waits for one sleeps: input threads that spin would take the
/// processor from those that work. Thread-safe.
class EventPool {
 public:
  EventPool(int number, std::string device);
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  int number() const { return number_; }
  /// One that knows its time, or a cheaper one that does not.
  PooledEvent take(bool timed);

 private:
  friend class PooledEvent;
  void give_back(cudaEvent_t event, bool timed);

  const int number_;
  const std::string device_;
  Mutex mutex_;
  std::vector<cudaEvent_t> free_[2] PENSTOCK_GUARDED_BY(mutex_);  // by timed
};

/// Gives the time of a device's events on wall_clock(). Thread-safe.
///
/// CUDA reports only how long after another an event passed, as a float of
/// milliseconds: precise for seconds, not for hours. So about every second an
/// event is recorded on an idle stream of its own, an anchor, whose time is
/// that of the anchor before it plus a short span; and the host's clock, read
/// around it, keeps the two clocks together (TimeMap).
class EventClock {
 public:
  /// An event whose time on the device's clock is known.
  struct Anchor {
    PooledEvent event;
    Nanoseconds time;
  };

  EventClock(EventPool& pool, int number, std::string device);
  ~EventClock();
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;

  /// The one to which an event that is recorded now is compared. Waits for
  /// the device only the first time, and else at most kPatience a second.
  std::shared_ptr<const Anchor> anchor();
  /// When `event`, which has passed, passed.
  Nanoseconds time_of(cudaEvent_t event, const Anchor& anchor);

 private:
  Nanoseconds after(const Anchor& anchor, cudaEvent_t event) const;
  void set_anchor(bool must) PENSTOCK_REQUIRES(mutex_);

  EventPool& pool_;
  const int number_;
  const std::string device_;
  cudaStream_t stream_ = nullptr;
  Mutex mutex_;
  TimeMap map_ PENSTOCK_GUARDED_BY(mutex_);
  std::shared_ptr<const Anchor> anchor_ PENSTOCK_GUARDED_BY(mutex_);
  Nanoseconds tried_ PENSTOCK_GUARDED_BY(mutex_){0};
};

/// A point in the work of a CUDA stream.
class CudaEvent final : public Event::State {
 public:
  /// Records it. Without a clock it knows no time.
  CudaEvent(EventPool& pool, EventClock* clock, cudaStream_t stream,
            const std::string& device);

  bool passed() override;
  void wait() override;
  Nanoseconds time() override;

  cudaEvent_t get() const { return event_.get(); }

 private:
  static constexpr std::int64_t kUnknown = -1;

  const int number_;
  const std::string& device_;
  EventClock* clock_;
  std::shared_ptr<const EventClock::Anchor> anchor_;
  Nanoseconds recorded_;
  PooledEvent event_;
  // Only ever set, and a reader that sees it set needs nothing else to be
  // visible: the driver orders the memory that the event guards.
  std::atomic<bool> passed_ = false;
  // What time() said first; set once, and nothing else depends on it.
  std::atomic<std::int64_t> time_ = kUnknown;
};

}  // namespace penstock::cuda
