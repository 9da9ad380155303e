#include "penstock/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr std::chrono::milliseconds kAskAgain{50};

bool is_named(int file, const std::filesystem::path& path) {
  struct stat held {};
  struct stat there {};
  return ::fstat(file, &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

}  // namespace

// The holder removes the file while it has the lock. One that had opened it
// before gets the lock of a file that is gone, sees that, and opens another.
bool FileLock::try_take(const std::filesystem::path& path) {
  PENSTOCK_ASSERT(file_ < 0, "a lock is taken once");
  path_ = path;  // there may be no memory for it
  for (;;) {
    was_left_ = ::access(path.c_str(), F_OK) == 0;
    int file =
        ::open(path.c_str(),
               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file < 0) return true;
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      bool taken = errno == EWOULDBLOCK;
      ::close(file);
      return !taken;
    }
    if (is_named(file, path)) {
      file_ = file;
      return true;
    }
    ::close(file);
  }
}

bool FileLock::take(const std::filesystem::path& path,
                    const std::function<void(int times)>& before_wait) {
  int times = 0;
  for (; !try_take(path); ++times) {
    before_wait(times);
    std::this_thread::sleep_for(kAskAgain);
  }
  return times > 0;
}

void FileLock::give_back() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
  file_ = -1;
}

FileLock::~FileLock() { give_back(); }

}  // namespace penstock
