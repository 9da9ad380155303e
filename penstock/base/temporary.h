#pragma once

#include <filesystem>
#include <string_view>

namespace penstock {

/// A new file next to `path`, under a unique name, to be written and then
/// renamed. It is locked (flock) until it has its final name, so that other
/// processes can tell it from one whose writer was killed: the system drops the
/// locks of a dead process, whatever its number was and in any container. A
/// file that was not renamed is removed.
class TemporaryFile {
 public:
  /// Its owner alone may read it, unless `mode` says otherwise.
  explicit TemporaryFile(const std::filesystem::path& path,
                         unsigned mode = 0600);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// False, with errno, when it could not be made.
  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  /// Removes the name: the file is gone when it is closed.
  void forget_name();
  /// Takes the place of `path`. False, with errno, when that failed.
  bool become(const std::filesystem::path& path);

 private:
  std::filesystem::path name_;  // empty once it is renamed
  int number_ = -1;
};

/// Makes or replaces a symbolic link, atomically. False, with errno.
bool make_link(const std::filesystem::path& target,
               const std::filesystem::path& link);

/// Removes the temporary files of `path` whose writers were killed: files that
/// no process has locked, and links that are a minute old (a link cannot be
/// locked; its maker renames it at once, and makes another when it is gone).
/// Never throws: what cannot be removed stays.
void remove_leftovers(const std::filesystem::path& path) noexcept;
/// The same for all paths of a folder whose names begin with `begin`.
void remove_leftovers(const std::filesystem::path& folder,
                      std::string_view begin) noexcept;

}  // namespace penstock
