#include "penstock/session/copied_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "penstock/base/base.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = std::size_t{4} << 20;

class OpenedFile {
 public:
  OpenedFile(const fs::path& path, int flags)
      : file_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}

  explicit operator bool() const { return bool(file_); }
  int number() const { return file_.number(); }
  std::int64_t size() const {
    struct stat found {};
    return ::fstat(number(), &found) == 0 ? found.st_size : 0;
  }

  /// Fills a piece from a place, as far as the file goes; -1, with errno.
  std::int64_t read(std::int64_t at, std::span<std::byte> to) const {
    std::size_t done = 0;
    while (done < to.size()) {
      const ssize_t count =
          ::pread(number(), to.data() + done, to.size() - done,
                  at + static_cast<std::int64_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return -1;
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    return static_cast<std::int64_t>(done);
  }

  /// Whether these bytes are there already; `piece` is overwritten.
  bool has(std::int64_t at, std::span<const std::byte> bytes,
           std::span<std::byte> piece) const {
    piece = piece.first(bytes.size());
    return read(at, piece) == std::ssize(bytes) &&
           std::memcmp(piece.data(), bytes.data(), bytes.size()) == 0;
  }

  bool write(std::int64_t at, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(number(), bytes.data(), bytes.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      at += count;
    }
    return true;
  }

 private:
  Descriptor file_;
};

[[noreturn]] void cannot_read(const StagedFile& file) {
  const int reason = errno;
  throw Error(
      ErrorKind::source,
      {.code = "files.unreadable",
       .what = "cannot read '" + file.from + "'",
       .where = "source.path",
       .why = std::strerror(reason),
       .next = "check the file; files that were already copied are kept"});
}

[[noreturn]] void cannot_write(const fs::path& to) {
  const int reason = errno;
  const bool full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  throw Error(
      ErrorKind::request,
      {.code = full ? "source.stage_room" : "file.write",
       .what = "cannot copy the source's files",
       .where = to.string(),
       .why = std::strerror(reason),
       .next = full ? "free some space, or name a folder on another drive as "
                      "source.stage; files that were already copied are kept"
                    : "check the permissions of that folder, or name another "
                      "one as source.stage"});
}

[[noreturn]] void changed(const StagedFile& file) {
  throw Error(
      ErrorKind::source,
      {.code = "files.changed",
       .what = "cannot copy '" + file.from + "'",
       .where = "source.path",
       .why = "the file has changed since the files were listed",
       .next = "start again when no other program writes to the files"});
}

/// The hash of the first `bytes`; none where there are fewer.
std::optional<std::uint64_t> hash_of(const OpenedFile& file, std::int64_t bytes,
                                     std::span<std::byte> piece) {
  std::uint64_t hash = 0;
  for (std::int64_t at = 0; at < bytes;) {
    const auto count = std::min<std::int64_t>(std::ssize(piece), bytes - at);
    const auto part = piece.first(static_cast<std::size_t>(count));
    if (file.read(at, part) != count) return std::nullopt;
    hash = hash64(part, hash);
    at += count;
  }
  return hash;
}

}  // namespace

// The order matters:
//   1. The copy goes into a ".part" file whose name has the version of the
//      original, so an interrupted copy is continued only for that version.
//   2. The original is looked at again: all bytes are of one version.
//   3. The copy is synced, dropped from the page cache and read back, and the
//      hashes are compared: what the list then has was read from the drive.
//   4. The time is set and the file renamed. The list takes it only afterwards.
// hash64 is chained from piece to piece, so both passes must cut at kPiece.
std::uint64_t copy_file(const StagedFile& file, const fs::path& to,
                        bool to_memory,
                        const std::function<void(std::int64_t bytes)>& seen) {
  real_files().make_folders(to.parent_path(), Readers::owner);
  fs::path part = to;
  part += ".part-" + std::to_string(hash64(file.version));
  const OpenedFile from(file.from, O_RDONLY);
  if (!from) cannot_read(file);
  const OpenedFile copy(part, O_RDWR | O_CREAT);
  if (!copy) cannot_write(part);
  // What an earlier copy left is compared: a power loss leaves zeros, too.
  const std::int64_t left = copy.size();
  std::vector<std::byte> piece(kPiece), there(left > 0 ? kPiece : 0);
  std::uint64_t hash = 0;
  for (std::int64_t at = 0; at < file.bytes;) {
    const auto wanted =
        std::min<std::int64_t>(std::ssize(piece), file.bytes - at);
    const auto bytes = std::span(piece).first(static_cast<std::size_t>(wanted));
    const std::int64_t count = from.read(at, bytes);
    if (count < 0) cannot_read(file);
    if (count < wanted) changed(file);
    const bool is_there = at + wanted <= left && copy.has(at, bytes, there);
    if (!is_there && !copy.write(at, bytes)) cannot_write(part);
    // What was read is not read again: it need not be in memory twice.
    ::posix_fadvise(from.number(), at, count, POSIX_FADV_DONTNEED);
    hash = hash64(bytes, hash);
    at += count;
    seen(count);
  }
  if (::ftruncate(copy.number(), file.bytes) != 0) cannot_write(part);
  if (staged_file(file.from, file.to).version != file.version) changed(file);
  if (!to_memory) {  // read back from the drive
    if (::fdatasync(copy.number()) != 0) cannot_write(part);
    ::posix_fadvise(copy.number(), 0, 0, POSIX_FADV_DONTNEED);
  }
  if (hash_of(copy, file.bytes, piece) != hash) {
    ::unlink(part.c_str());
    throw Error(
        ErrorKind::source,
        {.code = "source.stage_damaged",
         .what = "the copy of '" + file.from + "' is damaged",
         .where = to.string(),
         .why = "the bytes read from the copy differ from the bytes written",
         .next = "check the drive, or name a folder on another drive as "
                 "source.stage"});
  }
  const timespec time{.tv_sec = file.changed_ns / 1'000'000'000,
                      .tv_nsec = file.changed_ns % 1'000'000'000};
  const timespec times[] = {time, time};
  if (::futimens(copy.number(), times) != 0 ||
      ::rename(part.c_str(), to.c_str()) != 0)
    cannot_write(to);
  return hash;
}

// mincore(2): a bit for each page of a mapping, which says whether it is in
// memory; mapping it does not read it. The kernel tells the truth only to those
// who might write the file.
double share_in_page_cache(const std::vector<fs::path>& files) {
  constexpr std::size_t kMost = 64, kWindow = std::size_t{1} << 30;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t step = std::max<std::size_t>(1, files.size() / kMost);
  std::size_t pages = 0, there = 0;
  for (std::size_t f = 0; f < files.size(); f += step) {
    // Of a file that another user owns the kernel says that all of it is there.
    if (::access(files[f].c_str(), W_OK) != 0) return 0;
    const OpenedFile file(files[f], O_RDONLY);
    if (!file) return 0;
    const auto size = static_cast<std::size_t>(file.size());
    for (std::size_t at = 0; at < size; at += kWindow) {
      const std::size_t bytes = std::min(kWindow, size - at);
      void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED,
                            file.number(), static_cast<off_t>(at));
      if (mapped == MAP_FAILED) return 0;
      std::vector<unsigned char> found((bytes + page - 1) / page);
      const bool known = ::mincore(mapped, bytes, found.data()) == 0;
      ::munmap(mapped, bytes);
      if (!known) return 0;
      pages += found.size();
      there += static_cast<std::size_t>(std::ranges::count_if(
          found, [](unsigned char flags) { return (flags & 1) != 0; }));
    }
  }
  return pages == 0 ? 0
                    : static_cast<double>(there) / static_cast<double>(pages);
}

}  // namespace penstock
