#include "penstock/monitor/thread_sampler.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
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

/// /proc/self/task/TID/syscall, kept open: to read it again is several times as
/// cheap as to open it.
class CallFile {
 public:
  CallFile(pid_t thread, const std::filesystem::path& root)
      : thread_(thread),
        file_(::open(
            (root / "proc/self/task" / std::to_string(thread) / "syscall")
                .c_str(),
            O_RDONLY | O_CLOEXEC)) {}
  ~CallFile() {
    if (file_ >= 0) ::close(file_);
  }
  CallFile(CallFile&& other) noexcept
      : thread_(other.thread_), file_(std::exchange(other.file_, -1)) {}
  CallFile& operator=(CallFile&& other) noexcept {
    std::swap(thread_, other.thread_);
    std::swap(file_, other.file_);
    return *this;
  }

  pid_t thread() const { return thread_; }
  std::optional<ThreadDoes> what_it_says() const {
    char line[256];
    const ssize_t length = ::pread(file_, line, sizeof(line), 0);
    if (length <= 0) return std::nullopt;
    return what_line_says({line, static_cast<std::size_t>(length)},
                          is_socket_or_pipe);
  }

 private:
  pid_t thread_;
  int file_;
};

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
  return CallFile(thread, root).what_it_says();
}

struct ThreadSampler::State {
  explicit State(Nanoseconds time) : period(time) {}

  void look() {
    Lock lock(mutex);
    while (!stops) {
      idle = working.empty() ? idle + 1 : 0;
      if (idle > kIdleLooks) {
        rests = true;
        while (rests && !stops) changed.wait(mutex);
        continue;
      }
      changed.wait_until(mutex, std::chrono::steady_clock::now() + pause());
      looks += working.empty() ? 0 : 1;
      for (pid_t thread : working)
        if (std::optional<ThreadDoes> does = look_at(thread))
          count(*does, seen);
    }
  }

  Nanoseconds pause() const PENSTOCK_REQUIRES(mutex) {
    if (looks < kOften) return period;
    return looks < kSeldom ? 10 * period : 20 * period;
  }

  std::optional<ThreadDoes> look_at(pid_t thread) PENSTOCK_REQUIRES(mutex) {
    auto file = std::ranges::find(files, thread, &CallFile::thread);
    if (file == files.end()) {
      if (files.size() == kMostFiles) files.erase(files.begin());
      file = files.emplace(files.end(), thread, "/");
    }
    const auto does = file->what_it_says();
    if (!does) files.erase(file);  // of a thread that had this number before
    return does;
  }

  /// Without anything to look at, until it rests: to wake it for each piece of
  /// work costs more than to look in vain.
  static constexpr int kIdleLooks = 20;
  /// Looks that tell enough to take one's time from then on.
  static constexpr int kOften = 40;
  static constexpr int kSeldom = 200;
  static constexpr std::size_t kMostFiles = 64;

  const Nanoseconds period;
  const pid_t process = ::getpid();
  Mutex mutex;
  Condition changed;
  int idle PENSTOCK_GUARDED_BY(mutex) = 0;
  std::int64_t looks PENSTOCK_GUARDED_BY(mutex) = 0;
  bool rests PENSTOCK_GUARDED_BY(mutex) = false;
  bool stops PENSTOCK_GUARDED_BY(mutex) = false;
  std::vector<pid_t> working PENSTOCK_GUARDED_BY(mutex);
  std::vector<CallFile> files PENSTOCK_GUARDED_BY(mutex);
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
  if (::getpid() != state_->process) {  // a fork, which has no such thread
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
  Lock lock(state_->mutex);
  state_->working.push_back(::gettid());
  if (std::exchange(state_->rests, false)) state_->changed.notify_all();
}

void ThreadSampler::end() {
  Lock lock(state_->mutex);
  auto found = std::ranges::find(state_->working, ::gettid());
  if (found != state_->working.end()) state_->working.erase(found);
}

ThreadSightings ThreadSampler::take() {
  Lock lock(state_->mutex);
  return std::exchange(state_->seen, {});
}

}  // namespace penstock
