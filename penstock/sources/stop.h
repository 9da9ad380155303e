#pragma once

#include <atomic>
#include <cstddef>

#include "penstock/base/error.h"

namespace penstock {

/// Stops reading from outside: it is set as soon as one of its flags is, by
/// another thread or a signal handler. The flags must outlive all that refer to
/// them. Without a flag it is never set.
class StopFlag {
 public:
  StopFlag() = default;
  StopFlag(std::nullptr_t) {}
  StopFlag(const std::atomic<bool>* flag,
           const std::atomic<bool>* other = nullptr)
      : flag_(flag), other_(other) {}

  bool is_set() const {
    return (flag_ != nullptr && flag_->load()) ||
           (other_ != nullptr && other_->load());
  }
  /// False when it can never be set.
  bool possible() const { return flag_ != nullptr || other_ != nullptr; }

 private:
  const std::atomic<bool>* flag_ = nullptr;
  const std::atomic<bool>* other_ = nullptr;
};

/// Throws the error of an interrupted read when `stop` is set.
void end_if_stopped(StopFlag stop);

/// True for that error, whichever stage it came through.
bool is_stop(const Error& error);

}  // namespace penstock
