#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/sync.h"
#include "penstock/exec/ring.h"

namespace penstock {

/// A bounded queue between two stages. Thread-safe.
///
/// close() wakes both sides: push() then returns false, and pop() returns what
/// is left, then nullopt. fail() does the same, but pop() ends by throwing the
/// error, so the consumer learns that its producer failed.
template <class T>
class Queue {
 public:
  explicit Queue(std::size_t capacity) : capacity_(capacity) {
    PENSTOCK_ASSERT(capacity > 0, "a queue needs room for one item");
  }

  /// Waits for room. False when the queue was closed: `item` is then dropped.
  bool push(T item) {
    Lock lock(mutex_);
    while (items_.size() >= capacity_ && !closed_) room_.wait(mutex_);
    if (closed_) return false;
    items_.push(std::move(item));
    filled_.notify_one();
    return true;
  }

  /// Waits for an item; nullopt when the queue is closed and empty.
  std::optional<T> pop() {
    Lock lock(mutex_);
    while (items_.empty() && !closed_) filled_.wait(mutex_);
    if (items_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    std::optional<T> item(items_.pop());
    room_.notify_one();
    return item;
  }

  /// The same two for items that may be dropped: they never wait, and return
  /// false or nullopt when the queue is full, empty or closed.
  bool try_push(T item) {
    Lock lock(mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push(std::move(item));
    filled_.notify_one();
    return true;
  }
  std::optional<T> try_pop() {
    Lock lock(mutex_);
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(items_.pop());
    room_.notify_one();
    return item;
  }

  void close() { end(nullptr); }
  /// The first error stays; later ones are dropped.
  void fail(std::exception_ptr error) { end(std::move(error)); }

 private:
  void end(std::exception_ptr error) {
    Lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    closed_ = true;
    room_.notify_all();
    filled_.notify_all();
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  Condition room_;
  Condition filled_;
  Ring<T> items_ PENSTOCK_GUARDED_BY(mutex_);
  std::exception_ptr error_ PENSTOCK_GUARDED_BY(mutex_);
  bool closed_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock
