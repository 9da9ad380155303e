#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "penstock/base/clock.h"

namespace penstock {

/// Where something was done.
enum class SpanLane {
  thread,  ///< on the thread that tells of it
  loop,    ///< by the loop that takes the batches
  device,  ///< on the device, in the order of the consumer's stream
};

/// One piece of work, by the wall clock.
struct Span {
  SpanLane lane = SpanLane::thread;
  std::string_view name;  ///< valid during the call
  Nanoseconds begin{0}, end{0};
  std::int64_t step = -1;  ///< of its epoch; -1: not known
};

/// Somebody who wants to hear of each piece of work: a trace, a profiler. All
/// calls come from the threads that work, several at a time.
class SpanListener {
 public:
  virtual ~SpanListener() = default;
  /// Work begins on this thread; `ended` follows on it, unless the listening
  /// began or ended in between.
  virtual void began(std::string_view name);
  virtual void ended(const Span& span) = 0;
};

/// Adds a listener for the whole process, as a log has one for all. It is heard
/// of until the returned object is gone, whose end waits for calls that are
/// being made. Thread-safe.
std::shared_ptr<void> listen_to_spans(std::shared_ptr<SpanListener> listener);

namespace spans {
/// Whether anybody listens: one load, where nobody does.
extern std::atomic<int> listeners;
inline bool heard() { return listeners.load(std::memory_order_relaxed) > 0; }
/// Throw nothing; a listener that throws loses what it was told.
void tell_begin(std::string_view name) noexcept;
void tell(const Span& span) noexcept;
}  // namespace spans

}  // namespace penstock
