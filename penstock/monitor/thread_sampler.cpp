#include "penstock/monitor/thread_sampler.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/kernel_files.h"
#include "penstock/base/log.h"
#include "penstock/base/sync.h"
#include "penstock/exec/exec.h"
#include "penstock/monitor/look_pace.h"

namespace penstock {
namespace {

// Of this processor's numbering; not every processor has all of them.
constexpr long kLocks[] = {SYS_futex,
#ifdef SYS_semop
                           SYS_semop, SYS_semtimedop,
#endif
                           SYS_flock, SYS_fcntl};
constexpr long kSleeps[] = {SYS_nanosleep, SYS_clock_nanosleep};
constexpr long kReads[] = {SYS_read, SYS_readv, SYS_pread64, SYS_preadv};
constexpr long kFiles[] = {SYS_openat, SYS_getdents64, SYS_newfstatat,
                           SYS_fsync,  SYS_write,      SYS_pwrite64,
#ifdef SYS_open
                           SYS_open,   SYS_stat,
#endif
                           SYS_statx};
constexpr long kNetwork[] = {SYS_ppoll,    SYS_pselect6, SYS_epoll_pwait,
                             SYS_recvfrom, SYS_recvmsg,  SYS_sendto,
#ifdef SYS_poll
                             SYS_poll,     SYS_select,   SYS_epoll_wait,
#endif
                             SYS_connect};

template <std::size_t N>
bool is_one_of(const long (&calls)[N], long call) {
  return std::ranges::find(calls, call) != std::end(calls);
}

bool is_socket_or_pipe(int descriptor) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0) return false;
  return S_ISSOCK(about.st_mode) || S_ISFIFO(about.st_mode);
}

/// By the second argument of futex(): "202 0x7f.. 0x80 ...".
bool is_private(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second =
      first == line.npos ? first : line.find(" 0x", first + 1);
  unsigned long what = 0;
  if (second != line.npos)
    std::from_chars(line.data() + second + 3, line.data() + line.size(), what,
                    16);
  return (what & FUTEX_PRIVATE_FLAG) != 0;
}

std::atomic<int> forks{0};  // that led to this process
[[maybe_unused]] const int forks_are_heard =
    ::pthread_atfork(nullptr, nullptr, [] { ++forks; });

/// Of the calling thread. To ask the kernel is a system call.
pid_t own_number() {
  thread_local pid_t number = 0;
  thread_local int known_in = -1;
  if (std::exchange(known_in, forks) != forks) number = ::gettid();
  return number;
}

std::int64_t& of(ThreadDoes does, ThreadSightings& seen) {
  switch (does) {
    case ThreadDoes::running:
      return seen.running;
    case ThreadDoes::in_lock:
      return seen.in_lock;
    case ThreadDoes::in_own_lock:
      return seen.in_own_lock;
    case ThreadDoes::in_file:
      return seen.in_file;
    case ThreadDoes::in_network:
      return seen.in_network;
    case ThreadDoes::asleep:
      return seen.asleep;
    case ThreadDoes::other:
      break;
  }
  return seen.other;
}

}  // namespace

// /proc/PID/task/TID/syscall: "running", or the number of the system call, its
// six arguments and two registers in hexadecimal; -1 is a thread that is
// blocked outside of a call, as by a page fault (proc(5)).
std::optional<ThreadDoes> what_line_says(std::string_view line,
                                         bool (*is_socket)(int descriptor)) {
  if (line.starts_with("running")) return ThreadDoes::running;
  long call = 0;
  const char* const end = line.data() + line.size();
  auto [after, failed] = std::from_chars(line.data(), end, call);
  if (failed != std::errc()) return std::nullopt;
  if (call == -1) return ThreadDoes::in_file;  // waits for a page
  if (call == SYS_futex && is_private(line)) return ThreadDoes::in_own_lock;
  if (is_one_of(kLocks, call)) return ThreadDoes::in_lock;
  if (is_one_of(kSleeps, call)) return ThreadDoes::asleep;
  if (is_one_of(kNetwork, call)) return ThreadDoes::in_network;
  if (is_one_of(kFiles, call)) return ThreadDoes::in_file;
  if (!is_one_of(kReads, call)) return ThreadDoes::other;
  int descriptor = -1;  // " 0x3 ..."
  if (end - after > 3) std::from_chars(after + 3, end, descriptor, 16);
  return is_socket(descriptor) ? ThreadDoes::in_network : ThreadDoes::in_file;
}

std::optional<ThreadDoes> what_thread_does(pid_t thread,
                                           const std::filesystem::path& root) {
  const std::string line =
      kernel_text(root / "proc/self/task" / std::to_string(thread) / "syscall");
  return what_line_says(line, is_socket_or_pipe);
}

struct ThreadSampler::State {
  explicit State(Nanoseconds time) : period(time) {}

  // `working` is read and changed under the mutex alone, and so are the counts.
  // A look is weighted by the periods since the last one, so sightings stay
  // shares of time while looks become rarer.
  void look() {
    Lock lock(mutex);
    while (!stops) {
      idle = working.empty() ? idle + 1 : 0;
      if (idle > kIdleLooks) {
        rests = true;
        while (rests && !stops) changed.wait(mutex);
        continue;
      }
      const int periods = pace.periods();
      changed.wait_until(mutex,
                         std::chrono::steady_clock::now() + periods * period);
      int waiting = 0;
      for (pid_t thread : working)
        if (std::optional<ThreadDoes> does = what_thread_does(thread)) {
          of(*does, seen) += periods;
          ++seen.looks;
          waiting += *does != ThreadDoes::running ? 1 : 0;
        }
      pace.add(std::ssize(working), waiting);
    }
  }

  /// Without anything to look at, until it rests: to wake it for each piece of
  /// work costs more than to look in vain.
  static constexpr int kIdleLooks = 20;

  const Nanoseconds period;
  const int process = forks;
  Mutex mutex;
  Condition changed;
  int idle PENSTOCK_GUARDED_BY(mutex) = 0;
  LookPace pace PENSTOCK_GUARDED_BY(mutex);
  bool rests PENSTOCK_GUARDED_BY(mutex) = false;
  bool stops PENSTOCK_GUARDED_BY(mutex) = false;
  std::vector<pid_t> working PENSTOCK_GUARDED_BY(mutex);
  ThreadSightings seen PENSTOCK_GUARDED_BY(mutex);
  std::unique_ptr<Stage> thread;
};

ThreadSampler::ThreadSampler(Nanoseconds period)
    : state_(std::make_unique<State>(period)) {
  State* state = state_.get();
  try {
    state_->thread = std::make_unique<Stage>(
        Stage::Options{.name = "sampler",
                       .body = [state](int) { state->look(); },
                       .failed = [](const std::exception_ptr&) {},
                       .last = [] {}});
  } catch (const Error& error) {  // the work continues unseen
    log(LogLevel::debug, error.what());
  }
}

ThreadSampler::~ThreadSampler() {
  if (forks != state_->process) {  // a fork, which has no such thread
    (void)state_.release();
    return;
  }
  {
    Lock lock(state_->mutex);
    state_->stops = true;
  }
  state_->changed.notify_all();
}

void ThreadSampler::begin() {
  if (forks != state_->process) return;  // its lock may be held for ever
  Lock lock(state_->mutex);
  state_->working.push_back(own_number());
  if (std::exchange(state_->rests, false)) state_->changed.notify_all();
}

void ThreadSampler::end() {
  if (forks != state_->process) return;
  Lock lock(state_->mutex);
  auto found = std::ranges::find(state_->working, own_number());
  if (found != state_->working.end()) state_->working.erase(found);
}

ThreadSightings ThreadSampler::take() {
  if (forks != state_->process) return {};
  Lock lock(state_->mutex);
  return std::exchange(state_->seen, {});
}

}  // namespace penstock
