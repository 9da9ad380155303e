#include "penstock/monitor/thread_sampler.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/base/sync.h"
#include "penstock/exec/exec.h"

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

void count(ThreadDoes does, ThreadSightings& in) {
  switch (does) {
    case ThreadDoes::running:
      ++in.running;
      return;
    case ThreadDoes::in_lock:
      ++in.in_lock;
      return;
    case ThreadDoes::in_file:
      ++in.in_file;
      return;
    case ThreadDoes::in_network:
      ++in.in_network;
      return;
    case ThreadDoes::asleep:
      ++in.asleep;
      return;
    case ThreadDoes::other:
      ++in.other;
  }
}

}  // namespace

std::optional<ThreadDoes> what_line_says(std::string_view line,
                                         bool (*is_socket)(int descriptor)) {
  if (line.starts_with("running")) return ThreadDoes::running;
  long call = 0;
  const char* const end = line.data() + line.size();
  auto [after, failed] = std::from_chars(line.data(), end, call);
  if (failed != std::errc()) return std::nullopt;
  if (call == -1) return ThreadDoes::in_file;  // waits for a page
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
  std::ifstream file(root / "proc/self/task" / std::to_string(thread) /
                     "syscall");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return what_line_says(line, is_socket_or_pipe);
}

struct ThreadSampler::State {
  explicit State(Nanoseconds time) : period(time) {}

  void look() {
    Lock lock(mutex);
    while (!stops) {
      idle = threads.empty() ? idle + 1 : 0;
      if (idle > kIdleLooks) {
        rests = true;
        while (rests && !stops) changed.wait(mutex);
        continue;
      }
      changed.wait_until(mutex, std::chrono::steady_clock::now() +
                                    (looks < kOften ? period : 5 * period));
      looks += threads.empty() ? 0 : 1;
      for (pid_t thread : threads)
        if (std::optional<ThreadDoes> does = what_thread_does(thread))
          count(*does, seen);
    }
  }

  /// Without anything to look at, until it rests: to wake it for each piece of
  /// work costs more than to look in vain.
  static constexpr int kIdleLooks = 20;
  /// Looks that tell enough to take one's time from then on.
  static constexpr int kOften = 200;

  const Nanoseconds period;
  Mutex mutex;
  Condition changed;
  int idle PENSTOCK_GUARDED_BY(mutex) = 0;
  std::int64_t looks PENSTOCK_GUARDED_BY(mutex) = 0;
  bool rests PENSTOCK_GUARDED_BY(mutex) = false;
  bool stops PENSTOCK_GUARDED_BY(mutex) = false;
  std::vector<pid_t> threads PENSTOCK_GUARDED_BY(mutex);
  ThreadSightings seen PENSTOCK_GUARDED_BY(mutex);
  std::unique_ptr<Stage> thread;
};

ThreadSampler::ThreadSampler(Nanoseconds period)
    : state_(std::make_unique<State>(period)) {
  State* state = state_.get();
  state_->thread = std::make_unique<Stage>(
      Stage::Options{.name = "sampler",
                     .body = [state](int) { state->look(); },
                     .failed = [](const std::exception_ptr&) {},
                     .last = [] {}});
}

ThreadSampler::~ThreadSampler() {
  {
    Lock lock(state_->mutex);
    state_->stops = true;
  }
  state_->changed.notify_all();
}

void ThreadSampler::begin() {
  Lock lock(state_->mutex);
  state_->threads.push_back(::gettid());
  if (std::exchange(state_->rests, false)) state_->changed.notify_all();
}

void ThreadSampler::end() {
  Lock lock(state_->mutex);
  auto found = std::ranges::find(state_->threads, ::gettid());
  if (found != state_->threads.end()) state_->threads.erase(found);
}

ThreadSightings ThreadSampler::take() {
  Lock lock(state_->mutex);
  return std::exchange(state_->seen, {});
}

}  // namespace penstock
