#pragma once

#include <memory>

#include "penstock/session/session.h"

namespace penstock::python {

/// Remembers the process that made it. After a fork the child has the memory
/// of its parent's loaders but not their threads: nothing of them works there,
/// and ending them would wait for ever.
class ForkGuard {
 public:
  ForkGuard();
  bool forked() const;
  /// Throws Error(request) in a child.
  void check() const;

 private:
  std::int64_t made_in_;
};

/// A batch that Python holds: by itself, its fields, and what other libraries
/// made of them. The last of these to go gives the memory back to the ring, on
/// whatever thread that is; it needs neither Python nor its lock.
class BatchHandle {
 public:
  BatchHandle(std::shared_ptr<Session> loader, std::shared_ptr<Batch> batch)
      : loader_(std::move(loader)), batch_(std::move(batch)) {}
  ~BatchHandle();
  BatchHandle(const BatchHandle&) = delete;
  BatchHandle& operator=(const BatchHandle&) = delete;

  const Batch& batch() const { return *batch_; }
  Session& loader() const { return *loader_; }
  ForkGuard fork() const { return fork_; }

  /// True when host memory holds the data, so that anybody may read it.
  bool on_host() const;
  /// Waits for the data.
  void wait() const { batch_->wait(); }
  /// Makes a stream of another library wait for the data, and the memory wait
  /// for what that stream does until the batch is given back. On any thread.
  void wait_on(void* stream) { loader_->wait_on(*batch_, stream); }

 private:
  std::shared_ptr<Session> loader_;
  std::shared_ptr<Batch> batch_;  ///< gone before the session
  ForkGuard fork_;
};

}  // namespace penstock::python
