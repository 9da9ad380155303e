#include "penstock/base/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/lost_pages.h"
#include "penstock/base/regular_file.h"
#include "penstock/base/temporary.h"

namespace penstock {
namespace {

using Path = std::filesystem::path;

const char* after_reading(int reason) {
  switch (reason) {
    case ELOOP:
      return "point the link at the file, or name that file";
    case EISDIR:
      return "name a file in it";
    case ENXIO:
      return "name a file, or a pipe that a program writes to";
    case EACCES:
      return "make it readable for this user, or name another file";
    default:
      return "check the path";
  }
}

const char* after_writing(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return "free some space there";
    case EFBIG:
      return "raise the limit on the size of files (ulimit -f)";
    case EACCES:
    case EPERM:
    case EROFS:
      return "make it writable for this user, or name another place";
    case ENOTDIR:
      return "check that each part of the path is a folder";
    case ELOOP:
      return "point the link at a folder";
    case EIO:
      return "check the drive that holds the path";
    case EPIPE:
      return "keep the program that reads the pipe running";
    default:
      return "check the path";
  }
}

[[noreturn]] void refuse(ErrorKind kind, const char* doing, const Path& path,
                         int reason, const std::string& left = "") {
  if (reason == ENOENT)
    check_current_folder(path, std::string("cannot ") + doing);
  refuse_shortage(kind, doing, path, reason, left);
  throw Error(kind,
              {.code = kind == ErrorKind::source ? "file.read" : "file.write",
               .what = std::string("cannot ") + doing,
               .where = path.string(),
               .why = (kind == ErrorKind::source ? why_not_opened(reason)
                                                 : std::strerror(reason)) +
                      left,
               .next = kind == ErrorKind::source ? after_reading(reason)
                                                 : after_writing(reason)});
}

unsigned mode_for(Readers readers) {
  return readers == Readers::owner ? 0600 : 0644;
}

/// A file descriptor that closes itself; close() reports what the system says.
class File {
 public:
  File(const Path& path, int flags, Readers readers = Readers::owner)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, mode_for(readers))) {}
  explicit File(int number) : number_(number) {}
  ~File() {
    if (number_ >= 0) ::close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

/// Of the user who runs this, or of root.
bool is_ours(const struct stat& file) {
  return file.st_uid == 0 || file.st_uid == ::geteuid();
}

void sync_folder(const Path& folder) {
  File file(folder.empty() ? Path(".") : folder, O_RDONLY | O_DIRECTORY);
  if (file.open()) ::fsync(file.number());
}

/// Whether it is a file that a process has open, as /dev/stdout names one.
bool is_open_file(Path path) {
  std::error_code none;
  for (int links = 0; links < 8 && std::filesystem::is_symlink(path, none);
       ++links) {
    const Path folder = std::filesystem::weakly_canonical(
        path.has_parent_path() ? path.parent_path() : Path("."), none);
    if (folder.string().starts_with("/proc/")) return true;
    path = folder / std::filesystem::read_symlink(path, none);
  }
  return false;
}

/// Writes at the end of what nothing may replace: a device, a pipe, a file that
/// is open.
class DeviceWriter final : public FileWriter {
 public:
  explicit DeviceWriter(const Path& path)
      : path_(path), file_(path, O_WRONLY | O_APPEND | O_NONBLOCK) {
    if (!file_.open())
      refuse(ErrorKind::request, "append to the output", path_, errno,
             errno == ENXIO ? ": no program reads the pipe" : "");
    // Only opening must not wait, for a reader who never comes.
    if (::fcntl(file_.number(), F_SETFL, O_APPEND) != 0) fail();
  }
  void append(std::span<const std::byte> bytes) override {
    if (!write_all(file_.number(), bytes)) fail();
  }
  void commit(Lasting) override {
    if (!file_.close()) fail();
  }

 private:
  [[noreturn]] void fail() const {
    refuse(ErrorKind::request, "append to the output", path_, errno);
  }

  const Path path_;
  File file_;
};

class RealWriter final : public FileWriter {
 public:
  RealWriter(const Path& path, Readers readers)
      : path_(path), temporary_(path, mode_for(readers)) {
    if (!temporary_.open()) fail();
  }
  void append(std::span<const std::byte> bytes) override {
    if (!write_all(temporary_.number(), bytes)) fail();
    size_ += bytes.size();
    if (size_ < kLarge || size_ - begun_ < kMuch) return;
    // Begins to write it to the disk, so that commit() waits for less.
    ::sync_file_range(temporary_.number(), static_cast<off64_t>(begun_),
                      static_cast<off64_t>(size_ - begun_),
                      SYNC_FILE_RANGE_WRITE);
    begun_ = size_;
  }
  void commit(Lasting lasting) override {
    if (lasting == Lasting::later)
      close_once();
    else if (::fsync(temporary_.number()) != 0)
      fail();
    if (!temporary_.become(path_)) fail();
    if (lasting == Lasting::now) sync_folder(path_.parent_path());
    if (lasting != Lasting::later) remove_leftovers(path_);
  }

 private:
  /// Some file systems tell only then that they have no room.
  void close_once() {
    const int copy = ::dup(temporary_.number());
    if (copy < 0 || ::close(copy) != 0) fail();
  }
  [[noreturn]] void fail() const {
    refuse(ErrorKind::request, "write the file", path_, errno);
  }

  /// What is soon removed again is seldom so large: it need not get there.
  static constexpr std::size_t kLarge = std::size_t{256} << 20;
  static constexpr std::size_t kMuch = std::size_t{32} << 20;
  const Path path_;
  TemporaryFile temporary_;
  std::size_t size_ = 0;
  std::size_t begun_ = 0;  // bytes that are on their way to the disk
};

class RealMapping final : public FileMapping {
 public:
  /// `ours`: not where the file belongs to another user.
  RealMapping(const Path& path, bool ours) {
    const File file(open_regular_file(path.c_str()));
    struct stat found {};
    if (!file.open() || ::fstat(file.number(), &found) != 0)
      refuse(ErrorKind::source, "map the file", path, errno);
    if (ours && !is_ours(found))
      throw Error(ErrorKind::source,
                  {.code = "file.owner",
                   .what = "cannot map the file",
                   .where = path.string(),
                   .why = "it belongs to user " + std::to_string(found.st_uid) +
                          ", who could change it while it is in use",
                   .next = "copy the file, or name another folder"});
    if (!map(file.number(), static_cast<std::size_t>(found.st_size)))
      refuse(ErrorKind::source, "map the file", path, errno);
  }
  /// The first bytes of a file that is open.
  RealMapping(int file, std::size_t size, const Path& path) {
    if (!map(file, size))
      refuse(ErrorKind::request, "map the file", path, errno);
  }
  ~RealMapping() override {
    lost_.reset();
    if (!bytes_.empty())
      ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  RealMapping(const RealMapping&) = delete;
  RealMapping& operator=(const RealMapping&) = delete;
  std::span<const std::byte> bytes() const override { return bytes_; }
  std::int64_t lost_pages() const override { return lost_->count(); }
  void patch(std::size_t begin, std::span<const std::byte> bytes) override {
    PENSTOCK_ASSERT(begin + bytes.size() <= bytes_.size(),
                    "a patch lies within the file");
    // The last page holds the rest of the file's bytes, too.
    const std::size_t end =
        std::min(bytes_.size(), pages(bytes.size()) + begin);
    std::vector<std::byte> whole(
        bytes_.begin() + static_cast<std::ptrdiff_t>(begin),
        bytes_.begin() + static_cast<std::ptrdiff_t>(end));
    std::ranges::copy(bytes, whole.begin());
    void* const to = const_cast<std::byte*>(bytes_.data() + begin);
    if (::mmap(to, whole.size(), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      throw Error(ErrorKind::out_of_memory,
                  {.code = "file.no_memory",
                   .what = "cannot hold bytes of a damaged file",
                   .where = std::to_string(whole.size()) + " bytes",
                   .why = std::strerror(errno),
                   .next = "free memory, and start again"});
    std::memcpy(to, whole.data(), whole.size());
    ::mprotect(to, whole.size(), PROT_READ);
  }

 private:
  static std::size_t pages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
  }
  bool map(int file, std::size_t size) {
    void* data = nullptr;
    if (size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) return false;
    bytes_ = {static_cast<const std::byte*>(data), size};
    lost_.emplace(data, size);
    return true;
  }

  std::span<const std::byte> bytes_;
  std::optional<LostPages> lost_;
};

/// Where the system knows no file without a name, one whose name is removed.
class RealScratch final : public ScratchFile {
 public:
  explicit RealScratch(const Path& folder)
      : folder_(folder),
        nameless_(folder.empty() ? "." : folder, O_RDWR | O_TMPFILE) {
    if (nameless_.open()) return;
    if (errno != EOPNOTSUPP && errno != EISDIR)
      refuse(ErrorKind::request, "make a temporary file", folder_, errno);
    named_.emplace(folder / "scratch");
    if (!named_->open())
      refuse(ErrorKind::request, "make a temporary file", folder_, errno);
    named_->forget_name();
  }
  void append(std::span<const std::byte> bytes) override {
    if (!write_all(number(), bytes))
      refuse(ErrorKind::request, "write a temporary file", folder_, errno);
    size_ += bytes.size();
  }
  std::unique_ptr<FileMapping> map() override {
    return std::make_unique<RealMapping>(number(), size_, folder_);
  }

 private:
  int number() const { return named_ ? named_->number() : nameless_.number(); }

  const Path folder_;
  File nameless_;
  std::optional<TemporaryFile> named_;
  std::size_t size_ = 0;
};

/// The folder and those above it that are missing, for this user alone.
void make_own(const Path& path, std::error_code& error) {
  if (path.empty() || std::filesystem::is_directory(path, error))
    return error.clear();
  error.clear();
  if (!path.has_filename()) return make_own(path.parent_path(), error);
  make_own(path.parent_path(), error);
  if (error || ::mkdir(path.c_str(), 0700) == 0) return;
  const int reason = errno;  // another process may have made it
  if (std::filesystem::is_directory(path, error)) return error.clear();
  error.assign(reason, std::generic_category());
}

class RealFiles final : public FileSystem {
 public:
  std::string read(const Path& path) override {
    // A pipe that a program writes to is read, as the shell's <(...) is one.
    // Without a writer it would be waited for, and a device might never end.
    File file(path, O_RDONLY | O_NONBLOCK);
    struct stat found {};
    if (!file.open() || ::fstat(file.number(), &found) != 0)
      refuse(ErrorKind::source, "read the file", path, errno);
    const bool is_pipe = S_ISFIFO(found.st_mode);
    if (!is_pipe && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode) &&
        ::isatty(file.number()) == 0)
      refuse(ErrorKind::source, "read the file", path, ENXIO);
    std::string all;
    char piece[65536];
    for (;;) {
      ssize_t got = ::read(file.number(), piece, sizeof(piece));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) {
        ::pollfd writer{.fd = file.number(), .events = POLLIN, .revents = 0};
        ::poll(&writer, 1, -1);
        continue;
      }
      if (got == 0 && all.empty() && is_pipe)
        refuse(ErrorKind::source, "read the file", path, ENXIO);
      if (got < 0) refuse(ErrorKind::source, "read the file", path, errno);
      if (got == 0) return all;
      all.append(piece, static_cast<std::size_t>(got));
    }
  }

  std::unique_ptr<FileWriter> create(const Path& path,
                                     Readers readers) override {
    struct stat link {
    }, found{};
    const bool is_link =
        ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
    // Who made the link may not write to what it points at: it is replaced.
    if (is_link && !is_ours(link))
      return std::make_unique<RealWriter>(path, readers);
    if (::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) &&
        !S_ISDIR(found.st_mode))
      return std::make_unique<DeviceWriter>(path);
    if (!is_link) return std::make_unique<RealWriter>(path, readers);
    if (is_open_file(path)) return std::make_unique<DeviceWriter>(path);
    std::error_code none;
    const Path behind = std::filesystem::weakly_canonical(path, none);
    return std::make_unique<RealWriter>(none ? path : behind, readers);
  }

  std::unique_ptr<FileMapping> map(const Path& path) override {
    return std::make_unique<RealMapping>(path, true);
  }

  std::unique_ptr<ScratchFile> scratch(const Path& folder) override {
    return std::make_unique<RealScratch>(folder);
  }

  void append_line(const Path& path, std::string_view line,
                   Readers readers) override {
    File file(path, O_WRONLY | O_CREAT | O_APPEND, readers);
    std::string whole = std::string(line) + "\n";
    struct stat before {};
    if (!file.open() || ::fstat(file.number(), &before) != 0)
      refuse(ErrorKind::request, "write the file", path, errno);
    if (write_all(file.number(), std::as_bytes(std::span(whole))) &&
        file.close())
      return;
    int reason = errno;
    bool whole_again = ::truncate(path.c_str(), before.st_size) == 0;
    refuse(ErrorKind::request, "write the file", path, reason,
           whole_again ? "; the file is unchanged"
                       : "; after byte " + std::to_string(before.st_size) +
                             " the file may hold a part of a line");
  }

  void make_folders(const Path& path, Readers readers) override {
    std::error_code error;
    if (readers == Readers::owner)
      make_own(path, error);
    else
      std::filesystem::create_directories(path, error);
    if (error)
      refuse(ErrorKind::request, "make the folder", path, error.value());
  }

  void link_to(const Path& target, const Path& link) override {
    std::error_code none;
    auto found = std::filesystem::symlink_status(link, none).type();
    if (found != std::filesystem::file_type::not_found &&
        found != std::filesystem::file_type::symlink)
      throw Error(ErrorKind::request,
                  {.code = "file.write",
                   .what = "cannot make the link",
                   .where = link.string(),
                   .why = "something that is not a link has this name",
                   .next = "move it to another place"});
    if (!make_link(target, link))
      refuse(ErrorKind::request, "make the link", link, errno);
    remove_leftovers(link);
  }
};

/// The folder, or the nearest one above it that is there.
Path nearest_folder(const Path& folder) {
  std::error_code unknown;
  Path there = std::filesystem::absolute(folder, unknown);
  while (!std::filesystem::exists(there, unknown) && there.has_relative_path())
    there = there.parent_path();
  return there;
}

}  // namespace

std::string why_not_a_disk(const Path& folder) {
  const Path there = nearest_folder(folder);
  struct statfs found {};
  if (::statfs(there.c_str(), &found) != 0 ||
      ::access(there.c_str(), W_OK | X_OK) != 0)
    return folder.string() + ": " + std::strerror(errno);
  if (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC)
    return folder.string() + " is in memory";
  return {};
}

void check_can_write(const Path& folder) {
  const Path there = nearest_folder(folder);
  std::error_code unknown;
  if (!std::filesystem::is_directory(there, unknown))
    refuse(ErrorKind::request, "make the folder", folder, ENOTDIR);
  if (::access(there.c_str(), W_OK | X_OK) != 0)
    refuse(ErrorKind::request, "write to the folder", folder, errno);
}

std::optional<std::size_t> free_bytes(const Path& folder) {
  std::error_code failed;
  std::filesystem::space_info space =
      std::filesystem::space(nearest_folder(folder), failed);
  if (failed) return std::nullopt;
  return static_cast<std::size_t>(space.available);
}

void check_current_folder(const Path& path, const std::string& doing) {
  std::error_code failed;
  if (path.is_absolute()) return;
  Path current = std::filesystem::current_path(failed);
  if (failed != std::errc::no_such_file_or_directory) return;
  throw Error(ErrorKind::request,
              {.code = "file.current_folder",
               .what = doing,
               .where = path.string(),
               .why = "this relative path starts at the current folder, which "
                      "has been removed",
               .next = "change to a folder that exists, or give a path that "
                       "begins with '/'"});
}

std::unique_ptr<FileMapping> map_data_file(const std::filesystem::path& path) {
  return std::make_unique<RealMapping>(path, false);
}

FileSystem& real_files() {
  // Leaked on purpose: threads may run until the process is gone.
  static auto* files = new RealFiles;
  return *files;
}

void refuse_shortage(ErrorKind kind, const char* doing, const Path& path,
                     int reason, const std::string& left) {
  if (reason == EMFILE || reason == ENFILE)
    throw Error(kind, {.code = "file.too_many_open",
                       .what = std::string("cannot ") + doing,
                       .where = path.string(),
                       .why = std::strerror(reason) + left,
                       .next = "raise the limit on open files (ulimit -n), or "
                               "lower loader.workers or loader.readers"});
  if (reason == ENOMEM)
    throw Error(
        kind,
        {.code = "file.no_memory",
         .what = std::string("cannot ") + doing,
         .where = path.string(),
         .why = std::strerror(reason) + left,
         .next = "raise the limit on address space (ulimit -v), which counts "
                 "mapped files, or use fewer rows or another 'loader.cache'"});
}

}  // namespace penstock
