#pragma once

#include <filesystem>
#include <vector>

#include "penstock/base/clock.h"

namespace penstock {

/// How long threads have been ready to run while others had the processor: the
/// thread that makes it, and those that work for it. Linux counts that for each
/// thread in its `schedstat` file (second number, in ns; see proc(5) and
/// Documentation/scheduler/sched-stats). A look takes about a microsecond for
/// each thread. One thread's.
class ProcessorQueue {
 public:
  ProcessorQueue();
  ~ProcessorQueue();
  ProcessorQueue(const ProcessorQueue&) = delete;
  ProcessorQueue& operator=(const ProcessorQueue&) = delete;
  /// Counts the threads, too, that the process has started since this was made.
  void add_new_threads();
  /// The sum over all of them. Zero on a system that does not count it.
  Nanoseconds now() const;

 private:
  std::vector<std::filesystem::path> before_;  // threads, when it was made
  std::vector<int> files_;
};

}  // namespace penstock
