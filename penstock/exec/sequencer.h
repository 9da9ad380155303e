#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "penstock/base/clock.h"
#include "penstock/base/sync.h"

namespace penstock {

/// Puts results that arrive in any order back into order of their number,
/// 0, 1, 2... Thread-safe.
///
/// It holds no bound of its own: who hands out the numbers bounds how far
/// ahead they run (in the loader, the ring of slots does).
template <class T>
class Sequencer {
 public:
  /// False when closed.
  bool put(std::int64_t number, T item) {
    Lock lock(mutex_);
    if (closed_) return false;
    arrived_.emplace(number, std::move(item));
    if (number == next_) ready_.notify_one();
    return true;
  }

  /// Waits for the next number; nullopt when closed and that number is not
  /// here. Throws the error of fail() at the point where it is all that is
  /// left, so what came before it in order is still delivered.
  std::optional<T> take() {
    Lock lock(mutex_);
    while (!closed_ && arrived_.find(next_) == arrived_.end())
      ready_.wait(mutex_);
    auto found = arrived_.find(next_);
    if (found == arrived_.end()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    std::optional<T> item(std::move(found->second));
    arrived_.erase(found);
    ++next_;
    return item;
  }

  void close() { end(nullptr); }
  void fail(std::exception_ptr error) { end(std::move(error)); }

  /// Items that wait because an earlier one is missing.
  std::size_t waiting() const {
    Lock lock(mutex_);
    return arrived_.size();
  }

 private:
  void end(std::exception_ptr error) {
    Lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    closed_ = true;
    ready_.notify_all();
  }

  mutable Mutex mutex_;
  Condition ready_;
  std::map<std::int64_t, T> arrived_ PENSTOCK_GUARDED_BY(mutex_);
  std::int64_t next_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ PENSTOCK_GUARDED_BY(mutex_);
  bool closed_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock
