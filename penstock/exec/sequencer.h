#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/sync.h"

namespace penstock {

/// Puts results that arrive in any order back into order of their number, 0, 1,
/// 2... Thread-safe.
///
/// It has no bound of its own: the code that assigns the numbers bounds how far
/// ahead they run (in the loader, the ring of slots does).
template <class T>
class Sequencer {
 public:
  /// Of two puts under one number the first counts. False for a number that was
  /// taken already.
  bool put(std::int64_t number, T item) {
    Lock lock(mutex_);
    if (number < next_) return false;
    make_room_for(number);
    if (!here(number)) {
      place(number) = std::move(item);
      ++waiting_;
    }
    if (number == next_) ready_.notify_one();
    return true;
  }
  /// Item `number` could not be made: take() throws `error` when its turn
  /// comes, and from then on. Of several errors the one with the lowest number
  /// is kept, of equals the first; also when closed.
  void put_error(std::int64_t number, std::exception_ptr error) {
    Lock lock(mutex_);
    if (error_ && error_at_ <= number) return;
    error_ = std::move(error);
    error_at_ = number;
    ready_.notify_all();
  }

  /// Waits for the next number. When closed and that number is not here, it
  /// throws the error that was put, under whatever number: the items before
  /// that will never come. nullopt where there is no error.
  std::optional<T> take() {
    Lock lock(mutex_);
    while (waits()) ready_.wait(mutex_);
    if (error_ && (error_at_ <= next_ || !here(next_)))
      std::rethrow_exception(error_);
    if (!here(next_)) return std::nullopt;
    std::optional<T> item = std::exchange(place(next_), std::nullopt);
    ++next_;
    --waiting_;
    return item;
  }

  /// Waits at most so long until take() would not wait; false when it would.
  bool ready_within(Nanoseconds time) {
    auto end = std::chrono::steady_clock::now() + time;
    Lock lock(mutex_);
    while (waits())
      if (!ready_.wait_until(mutex_, end)) return !waits();
    return true;
  }

  /// Wakes the consumer, which waits no more: it takes what is here by then.
  void close() {
    Lock lock(mutex_);
    closed_ = true;
    ready_.notify_all();
  }

  /// True while later items are here and the next one is not.
  bool misses_next() const {
    Lock lock(mutex_);
    return waiting_ > 0 && !here(next_);
  }

 private:
  // Number n waits at place n modulo the number of places, of which there are
  // more than numbers can lie ahead.
  std::optional<T>& place(std::int64_t number) PENSTOCK_REQUIRES(mutex_) {
    return places_[static_cast<std::size_t>(number) % places_.size()];
  }
  bool here(std::int64_t number) const PENSTOCK_REQUIRES(mutex_) {
    if (places_.empty()) return false;
    return places_[static_cast<std::size_t>(number) % places_.size()]
        .has_value();
  }
  bool waits() const PENSTOCK_REQUIRES(mutex_) {
    return !closed_ && !here(next_) && !(error_ && error_at_ <= next_);
  }

  void make_room_for(std::int64_t number) PENSTOCK_REQUIRES(mutex_) {
    auto ahead = static_cast<std::size_t>(number - next_);
    if (ahead < places_.size()) return;
    std::vector<std::optional<T>> larger(2 * ahead + 4);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      auto at = static_cast<std::size_t>(next_) + i;
      larger[at % larger.size()] = std::move(places_[at % places_.size()]);
    }
    places_ = std::move(larger);
  }

  mutable Mutex mutex_;
  Condition ready_;
  std::vector<std::optional<T>> places_ PENSTOCK_GUARDED_BY(mutex_);
  std::int64_t next_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::int64_t waiting_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ PENSTOCK_GUARDED_BY(mutex_);
  std::int64_t error_at_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool closed_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock
