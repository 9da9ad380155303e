#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "penstock/base/clock.h"
#include "penstock/exec/exec.h"

namespace penstock {

/// What a thread is doing at one moment.
enum class ThreadDoes {
  running,
  in_lock,      ///< that another process may hold
  in_own_lock,  ///< or waits for a result: of threads of its process alone
  in_file,
  in_network,
  asleep,
  other
};

/// What a thread of this process does, from the system call that the kernel
/// says it is in (/proc/self/task/TID/syscall). A thread that waits for a page
/// of a mapped file is `in_file`. nullopt where the kernel does not tell, as in
/// containers that hide it, or there is no such thread. `root` is "/" except in
/// tests.
std::optional<ThreadDoes> what_thread_does(
    pid_t thread, const std::filesystem::path& root = "/");
/// The same for a line of that file: "202 0x7f.. 0x80 ...", "running", "-1
/// ...". `is_socket` says whether a descriptor is one.
std::optional<ThreadDoes> what_line_says(std::string_view line,
                                         bool (*is_socket)(int descriptor));

/// Looks at threads of this process from a thread of its own while they are at
/// some work: every 5 ms, every 20 ms after 40 looks and every 100 ms after
/// 200, or seldomer where nobody waits (LookPace): to wake it takes some 50 us
/// on a virtual machine. Thread-safe. The thread does not live on in a forked
/// process: make another sampler there; the one that was copied sees nothing,
/// and may be destroyed.
class ThreadSampler {
 public:
  explicit ThreadSampler(Nanoseconds period = Nanoseconds(5'000'000));
  ~ThreadSampler();
  ThreadSampler(const ThreadSampler&) = delete;
  ThreadSampler& operator=(const ThreadSampler&) = delete;

  /// The calling thread begins the work, and ends it.
  void begin();
  void end();
  /// What was seen since the last call.
  ThreadSightings take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
