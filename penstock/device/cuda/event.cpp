#include "penstock/device/cuda/event.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/device/cuda/call.h"

namespace penstock::cuda {
namespace {

constexpr Nanoseconds kBetweenAnchors = std::chrono::seconds(1);
// An idle stream passes an event within microseconds. If the device is too busy
// even for that, the previous anchor stays in use.
constexpr Nanoseconds kPatience = std::chrono::microseconds(100);

/// False when it is still to come.
bool has_passed(cudaEvent_t event, int number, const std::string& device) {
  OnDevice current(number);
  OutsideGraphs outside;
  cudaError_t result = cudaEventQuery(event);
  if (result == cudaErrorNotReady) {
    cudaGetLastError();  // an answer, and no error to be kept
    return false;
  }
  check(result, "cudaEventQuery", device);
  return true;
}

}  // namespace

PooledEvent::PooledEvent(PooledEvent&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      event_(other.event_),
      timed_(other.timed_) {}

PooledEvent::~PooledEvent() {
  if (pool_ != nullptr) pool_->give_back(event_, timed_);
}

EventPool::EventPool(int number, std::string device)
    : number_(number), device_(std::move(device)) {}

EventPool::~EventPool() {
  OnDevice current(number_);
  Lock lock(mutex_);
  for (const std::vector<cudaEvent_t>& events : free_)
    for (cudaEvent_t event : events)
      check_quietly(cudaEventDestroy(event), "cudaEventDestroy", device_);
}

PooledEvent EventPool::take(bool timed) {
  {
    Lock lock(mutex_);
    std::vector<cudaEvent_t>& free = free_[timed];
    if (!free.empty()) {
      cudaEvent_t event = free.back();
      free.pop_back();
      return PooledEvent(*this, event, timed);
    }
  }
  OnDevice current(number_);
  OutsideGraphs outside;
  cudaEvent_t event = nullptr;
  unsigned flags =
      cudaEventBlockingSync | (timed ? 0u : cudaEventDisableTiming);
  check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags",
        device_);
  return PooledEvent(*this, event, timed);
}

void EventPool::give_back(cudaEvent_t event, bool timed) {
  // Streams that wait for it still wait for the work that it stood for, even
  // when it is recorded again.
  Lock lock(mutex_);
  free_[timed].push_back(event);
}

EventClock::EventClock(EventPool& pool, int number, std::string device)
    : pool_(pool), number_(number), device_(std::move(device)) {
  OnDevice current(number);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags", device_);
}

EventClock::~EventClock() {
  OnDevice current(number_);
  check_quietly(cudaStreamDestroy(stream_), "cudaStreamDestroy", device_);
}

std::shared_ptr<const EventClock::Anchor> EventClock::anchor() {
  Lock lock(mutex_);
  if (anchor_ == nullptr)
    set_anchor(true);
  else if (wall_clock().now() - tried_ > kBetweenAnchors)
    set_anchor(false);
  return anchor_;
}

// The new anchor's time is the old one's plus the span that CUDA measured
// between them. Spans are short, so the error of a float of milliseconds does
// not add up to more than the host's readings correct. A return without a new
// anchor leaves everything as before but `tried_`, so a busy device is not
// asked again at once.
void EventClock::set_anchor(bool must) {
  OnDevice current(number_);
  PooledEvent event = pool_.take(true);
  Nanoseconds before = wall_clock().now();
  tried_ = before;
  check(cudaEventRecord(event.get(), stream_), "cudaEventRecord", device_);
  Nanoseconds now = before;
  while (!has_passed(event.get(), number_, device_)) {
    now = wall_clock().now();
    if (!must && now - before > kPatience) return;
  }
  now = wall_clock().now();
  // The event passed between the two readings: the clocks are corrected only
  // where its time is outside of them.
  Nanoseconds time{0}, seen = before + (now - before) / 2;
  if (anchor_ != nullptr) {
    time = after(*anchor_, event.get());
    seen = std::clamp(map_.host_time(time), before, now);
  }
  map_.read(time, seen);
  anchor_ = std::make_shared<const Anchor>(Anchor{std::move(event), time});
}

Nanoseconds EventClock::after(const Anchor& anchor, cudaEvent_t event) const {
  OnDevice current(number_);
  float ms = 0;
  check(cudaEventElapsedTime(&ms, anchor.event.get(), event),
        "cudaEventElapsedTime", device_);
  return anchor.time + Nanoseconds(std::llround(1e6 * double{ms}));
}

Nanoseconds EventClock::time_of(cudaEvent_t event, const Anchor& anchor) {
  Nanoseconds time = after(anchor, event);
  Lock lock(mutex_);
  return map_.host_time(time);
}

// The order of the members is the argument for time(): the anchor is recorded
// before this event, and `recorded_` is read before it, so the event cannot
// have passed earlier than `recorded_`.
CudaEvent::CudaEvent(EventPool& pool, EventClock* clock, cudaStream_t stream,
                     const std::string& device)
    : number_(pool.number()),
      device_(device),
      clock_(clock),
      anchor_(clock == nullptr ? nullptr : clock->anchor()),
      recorded_(wall_clock().now()),
      event_(pool.take(clock != nullptr)) {
  OnDevice current(number_);
  check(cudaEventRecord(event_.get(), stream), "cudaEventRecord", device_);
}

bool CudaEvent::passed() {
  if (!passed_) passed_ = has_passed(event_.get(), number_, device_);
  return passed_;
}

void CudaEvent::wait() {
  if (passed_) return;
  OnDevice current(number_);
  OutsideGraphs outside;
  check(cudaEventSynchronize(event_.get()), "cudaEventSynchronize", device_);
  passed_ = true;
}

Nanoseconds CudaEvent::time() {
  PENSTOCK_ASSERT(clock_ != nullptr,
                  "an event that was recorded without a time has none");
  if (time_ != kUnknown) return Nanoseconds(time_);
  wait();
  // What the host knows for certain limits what the two clocks say.
  Nanoseconds now = wall_clock().now();
  Nanoseconds time =
      std::clamp(clock_->time_of(event_.get(), *anchor_), recorded_, now);
  // Two threads may compute slightly different times, since the map changes
  // between them. The first one to store wins, and all callers get the same.
  std::int64_t unknown = kUnknown;
  time_.compare_exchange_strong(unknown, time.count());
  return Nanoseconds(time_);
}

}  // namespace penstock::cuda
