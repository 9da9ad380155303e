#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "penstock/base/error.h"

namespace penstock {

/// When a file that was written stays unchanged, whatever happens.
enum class Lasting : std::uint8_t {
  now,
  /// Once another file of its folder is written to last: what that refers to.
  /// Until then it may be as it was before.
  with_next,
  /// Some time; until then a power failure may leave it empty. For what is soon
  /// written again, or can be made again.
  later,
};

/// Who may read a file or folder that is made.
enum class Readers : std::uint8_t {
  as_umask,  ///< whoever the process's umask lets
  owner,     ///< its owner alone: it may hold what only they can read elsewhere
};

/// A large file that is being written, piece by piece. Until commit() it has a
/// name of its own; it is removed where that is not called. One thread's.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  /// Throws Error(request) with the path and the reason.
  virtual void append(std::span<const std::byte> bytes) = 0;
  /// fsync, rename, fsync of the folder: the file is there, whole; or what of
  /// these `lasting` needs. Throws as append() does.
  virtual void commit(Lasting lasting) = 0;
};

/// The bytes of a file, read when they are touched, and shared with all
/// processes that map it. That the file is replaced or removed does not matter.
/// Bytes that cannot be read any more, since the file was shortened or the
/// drive fails, are zeros. Thread-safe, but for patch().
class FileMapping {
 public:
  virtual ~FileMapping() = default;
  virtual std::span<const std::byte> bytes() const = 0;
  /// Pages that could not be read so far. Bytes are those of the file if the
  /// number is the same before and after they were used.
  virtual std::int64_t lost_pages() const = 0;
  /// Puts other bytes in place of those from `begin` on, which is a multiple of
  /// 4,096, for this process alone: the file stays unchanged. Other threads may
  /// read zeros there meanwhile. Throws Error(out_of_memory).
  virtual void patch(std::size_t begin, std::span<const std::byte> bytes) = 0;
};

/// A file without a name: gone with its last user, also where the process is
/// killed. One thread's.
class ScratchFile {
 public:
  virtual ~ScratchFile() = default;
  /// Throws Error(request) with the folder and the reason.
  virtual void append(std::span<const std::byte> bytes) = 0;
  /// All that was appended; nothing is appended afterwards. Throws as append().
  virtual std::unique_ptr<FileMapping> map() = 0;
};

/// The interface to the file system: what we do to files that must survive a
/// crash. Tests replace it to fail at any call. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// The whole file. Throws Error(source) with the path and the reason.
  virtual std::string read(const std::filesystem::path& path) = 0;
  /// Replaces the file or leaves the old one: temp file, fsync, rename, fsync
  /// of the folder. A pipe or device is written to, as /dev/stdout is. Throws
  /// Error(request) with the path and the reason.
  void write_atomic(const std::filesystem::path& path, std::string_view bytes) {
    write(path, bytes, Lasting::now);
  }
  /// The same, but for what a power failure may do to it afterwards.
  void write(const std::filesystem::path& path, std::string_view bytes,
             Lasting lasting, Readers readers = Readers::as_umask) {
    const std::unique_ptr<FileWriter> file = create(path, readers);
    file->append(std::as_bytes(std::span(bytes)));
    file->commit(lasting);
  }
  /// Adds one line at the end. If only a part of it can be written, the file is
  /// truncated to what it was, and the Error(request) reports it.
  virtual void append_line(const std::filesystem::path& path,
                           std::string_view line,
                           Readers readers = Readers::as_umask) = 0;
  /// The folder and all above it that are missing.
  virtual void make_folders(const std::filesystem::path& path,
                            Readers readers = Readers::as_umask) = 0;
  /// Begins a file that will replace `path`; what is no file, and nothing may
  /// replace, is written to. Throws Error(request).
  virtual std::unique_ptr<FileWriter> create(
      const std::filesystem::path& path,
      Readers readers = Readers::as_umask) = 0;
  /// Throws Error(source) with the path and the reason, also where the file
  /// belongs to another user, who could change it (root's are taken).
  virtual std::unique_ptr<FileMapping> map(
      const std::filesystem::path& path) = 0;
  /// Makes a file without a name in a folder. Throws Error(request).
  virtual std::unique_ptr<ScratchFile> scratch(
      const std::filesystem::path& folder) = 0;
  /// Points `link` at `target`, replacing an older link, atomically. Anything
  /// else of that name stays: Error(request).
  virtual void link_to(const std::filesystem::path& target,
                       const std::filesystem::path& link) = 0;
};

/// Throws file.too_many_open or file.no_memory where the system's `reason` (an
/// errno) is what this process lacks, whatever the file; `what` being "cannot "
/// and `doing`, and `left` what is to be said of the file.
void refuse_shortage(ErrorKind kind, const char* doing,
                     const std::filesystem::path& path, int reason,
                     const std::string& left = "");

/// Throws Error(request), `what` being `doing`, where `path` is relative and
/// the folder that it starts at has been removed.
void check_current_folder(const std::filesystem::path& path,
                          const std::string& doing);

/// Why large files should not go to this folder, or where it would be made: its
/// files are kept in memory (tmpfs), or this user cannot write there. Empty:
/// they may.
std::string why_not_a_disk(const std::filesystem::path& folder);

/// Throws Error(request) where this user cannot write to this folder, or make
/// it. Nothing is made.
void check_can_write(const std::filesystem::path& folder);

/// Bytes that this user may write to this folder, or where it would be made;
/// none: unknown.
std::optional<std::size_t> free_bytes(const std::filesystem::path& folder);

/// Maps a file of training data, whoever it belongs to. Throws Error(source).
std::unique_ptr<FileMapping> map_data_file(const std::filesystem::path& path);

/// The real one. Lives as long as the program.
FileSystem& real_files();

}  // namespace penstock
