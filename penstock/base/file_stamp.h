#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/hash.h"

namespace penstock {

/// What tells a file from every other one, and from itself at another time.
///
/// A program can give a file any size and any modification time (`rsync -t`,
/// `cp -p`, `touch -d`), but not the inode number and the time of the last
/// status change, which the file system sets on every write, rename and
/// replacement. Two stamps are equal if the file is the same and nobody has
/// touched it in between. The device number takes no part in that: it changes
/// when a file system is mounted again.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< st_mtim: contents, settable by programs
  std::int64_t changed_ns = 0;   ///< st_ctim: contents, name or permissions

  friend bool operator==(const FileStamp& a, const FileStamp& b) {
    return a.inode == b.inode && a.bytes == b.bytes &&
           a.modified_ns == b.modified_ns && a.changed_ns == b.changed_ns;
  }
};

FileStamp stamp_of(const struct stat& found);
/// Follows links. Nullopt if there is no such file or it cannot be looked at;
/// errno then says why.
std::optional<FileStamp> stamp_of(const std::string& path);

/// A stamp as one number, 0 for a file that does not exist: equal for equal
/// stamps, and with a chance of 2^-64 for others.
std::uint64_t digest_of(const std::optional<FileStamp>& stamp);

/// The present time as file systems record it, for comparison with
/// FileStamp::changed_ns. The kernel's clock for files is up to 10 ms behind
/// the precise one, so a change within 10 ms after this call may carry an
/// earlier time.
std::int64_t file_clock_ns();

/// Whether a file that does not exist may have existed at `time_ns`
/// (file_clock_ns()): names came, went or changed in the folder that it would
/// be in, or in the nearest one above it that is there.
bool may_be_gone_since(std::int64_t time_ns, const std::string& path);

/// Throws Error(source), files.changed: a run reads one version of each file.
[[noreturn]] void refuse_changed(const std::string& path,
                                 const std::string& how);

/// The same for a file that was written, replaced or renamed after `opened_ns`
/// (file_clock_ns()); `now` is nullopt for one that is missing, which is
/// refused if it may have been there.
void check_unchanged_since(std::int64_t opened_ns,
                           const std::optional<FileStamp>& now,
                           const std::string& path);

/// One digest of the stamps of many files, in their order. A file that does
/// not exist is different from every file that does. Devices count only as far
/// as they tell files of this list apart: by the order in which they come.
class FileStamps {
 public:
  void add(const std::optional<FileStamp>& stamp);
  /// What hex() gave of other files.
  void add_all(const std::string& digest) { all_.add(digest + "\n"); }
  /// 64 hex digits. Ends the list.
  std::string hex() { return all_.hex(); }

 private:
  std::vector<std::uint64_t> devices_;
  Sha256 all_;
};

}  // namespace penstock
