#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/arrow/python_child.h"
#include "penstock/sources/arrow/scanner.h"

namespace penstock::arrow_files {

/// A child process that several threads share: one request at a time.
/// Thread-safe.
///
/// A thread holds it for one request and its answer only, so threads that share
/// it never wait for each other's work on the rows. A scan that has begun is
/// kept in the process, under a number.
class SharedChild {
 public:
  explicit SharedChild(std::string python) : python_(std::move(python)) {}

  /// Calls `work`, which sends one request and reads the whole answer, and
  /// returns its result. The first call starts the process. Throws what
  /// PythonChild throws. Any exception but ScanFailure ends the process, and
  /// every later call throws that exception again.
  template <class Work>
  auto ask(Work work) {
    const std::scoped_lock lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
    try {
      if (!child_) child_.emplace(python_);
      return work(*child_);
    } catch (const ScanFailure&) {
      throw;
    } catch (...) {
      broken_ = std::current_exception();
      usable_ = false;
      child_.reset();
      throw;
    }
  }

  /// False once a request has failed. Does not wait for the current request.
  bool usable() const { return usable_; }

  /// A number for a scan that no other scan of this child has.
  std::uint64_t next_scan() { return ++scans_; }

 private:
  const std::string python_;
  std::mutex mutex_;
  std::optional<PythonChild> child_;
  std::exception_ptr broken_;
  // Atomics suffice: nothing else that is read depends on their values.
  std::atomic<bool> usable_ = true;
  std::atomic<std::uint64_t> scans_ = 0;
};

/// The child processes of this process, at most one for each processor that it
/// may use. Thread-safe.
class PythonChildren {
 public:
  PythonChildren();

  /// The child with the fewest holders, or a new one if every child has a
  /// holder and the limit allows it. Throws what PythonChild throws if no
  /// Python can be used.
  std::shared_ptr<SharedChild> take();

 private:
  std::shared_ptr<SharedChild> find();

  const std::size_t most_;
  std::mutex mutex_;
  std::string python_;  // empty until one that works is found
  std::vector<std::shared_ptr<SharedChild>> children_;
};

}  // namespace penstock::arrow_files
