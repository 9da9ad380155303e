#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "penstock/base/clock.h"

namespace penstock {

/// What the text of a thread's `schedstat` file says of the time that it was
/// ready to run and had no processor: its second number, in ns (proc(5),
/// Documentation/scheduler/sched-stats). nullopt: there is no such number.
std::optional<Nanoseconds> queued_in(std::string_view schedstat);

/// How long threads have been ready to run while others had the processor: the
/// thread that makes it, and those that work for it. A look takes about a
/// microsecond for each thread. One thread's.
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
