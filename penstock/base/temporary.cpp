#include "penstock/base/temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

using Path = std::filesystem::path;

constexpr int kTries = 16;
constexpr std::string_view kMark = ".tmp.";
constexpr std::size_t kRandomDigits = 16;  // behind the mark
constexpr std::time_t kLinkIsOldS = 60;

unsigned random_bits() {
  unsigned bits = 0;
  // The start of the other one asks the processor, which takes longer.
  return ::getrandom(&bits, sizeof(bits), 0) == sizeof(bits)
             ? bits
             : std::random_device()();
}

/// Names must differ between processes that share nothing, not even a clock.
Path new_name(const Path& path) {
  std::string name = path.string() + std::string(kMark);
  for (std::size_t word = 0; word < kRandomDigits / 8; ++word)
    for (unsigned bits = random_bits(), i = 0; i < 8; ++i, bits >>= 4)
      name += "0123456789abcdef"[bits & 15];
  return name;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// Removes a file that no process has locked: its writer is dead. On a file
/// system without locks it stays.
void remove_abandoned_file(int folder, const char* name) {
  int file =
      ::openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  // Unlinked while locked: a writer that has just made it waits for the lock,
  // then sees that its file is gone and makes another.
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlinkat(folder, name, 0);
  ::close(file);
}

void remove_leftover(int folder, const char* name) {
  struct stat found {};
  if (::fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (S_ISREG(found.st_mode)) remove_abandoned_file(folder, name);
  bool old = ::time(nullptr) - found.st_mtime > kLinkIsOldS;
  if (S_ISLNK(found.st_mode) && old) ::unlinkat(folder, name, 0);
}

template <class Chosen>
void remove_leftovers_if(const Path& in, Chosen chosen) {
  std::unique_ptr<DIR, CloseFolder> folder(
      ::opendir(in.empty() ? "." : in.c_str()));
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder.get()))
    if (chosen(std::string_view(entry->d_name)))
      remove_leftover(::dirfd(folder.get()), entry->d_name);
}

}  // namespace

// A writer holds the lock of its file as long as it lives, and the system takes
// it away however the process ends: what is not locked is abandoned. Between
// creating and locking, another process may take the file for abandoned and
// remove it; the count of links shows that.
TemporaryFile::TemporaryFile(const Path& path, unsigned mode) {
  for (int i = 0; i < kTries && number_ < 0; ++i) {
    Path name = new_name(path);
    int file =
        ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return;
    // On a file system without locks abandoned files stay, nothing worse.
    while (::flock(file, LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat made {};
    if (::fstat(file, &made) == 0 && made.st_nlink == 0) {
      ::close(file);  // another process removed it as abandoned
      errno = EEXIST;
      continue;
    }
    name_ = std::move(name);
    number_ = file;
  }
}

TemporaryFile::~TemporaryFile() {
  int reason = errno;  // which the caller will report
  if (!name_.empty()) ::unlink(name_.c_str());
  if (number_ >= 0) ::close(number_);
  errno = reason;
}

void TemporaryFile::forget_name() {
  ::unlink(name_.c_str());
  name_.clear();
}

bool TemporaryFile::become(const Path& path) {
  if (::rename(name_.c_str(), path.c_str()) != 0) return false;
  name_.clear();
  return true;
}

bool make_link(const Path& target, const Path& link) {
  for (int i = 0; i < kTries; ++i) {
    Path name = new_name(link);
    if (::symlink(target.c_str(), name.c_str()) != 0) {
      if (errno == EEXIST) continue;
      return false;
    }
    if (::rename(name.c_str(), link.c_str()) == 0) return true;
    int reason = errno;
    ::unlink(name.c_str());
    errno = reason;
    if (reason != ENOENT) return false;
  }
  return false;
}

void remove_leftovers(const Path& path) noexcept try {
  const std::string begin = path.filename().string() + std::string(kMark);
  remove_leftovers_if(path.parent_path(), [&](std::string_view name) {
    return name.starts_with(begin);
  });
} catch (const std::exception&) {
  // There is no memory for a name; the next write tries again.
}

void remove_leftovers(const Path& folder, std::string_view begin) noexcept {
  remove_leftovers_if(folder, [&](std::string_view name) {
    const std::size_t mark = name.rfind(kMark);
    return name.starts_with(begin) && mark != name.npos &&
           name.size() == mark + kMark.size() + kRandomDigits;
  });
}

}  // namespace penstock
