#pragma once

#include <filesystem>

namespace penstock {

/// A new file beside `path`, under a name that nobody else uses, to be written
/// and then renamed. It is locked (flock) until it has its final name, so that
/// others can tell it from one whose writer was killed: the system drops a dead
/// process's locks, whatever its number was and in whichever container. What
/// did not become the file is removed again.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// False, with errno, when it could not be made.
  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  /// Takes the place of `path`. False, with errno, when that failed.
  bool become(const std::filesystem::path& path);

 private:
  std::filesystem::path name_;  // empty once it is renamed
  int number_ = -1;
};

/// Makes or replaces a symbolic link, atomically. False, with errno.
bool make_link(const std::filesystem::path& target,
               const std::filesystem::path& link);

/// Removes the temporaries of `path` whose writers were killed: files that
/// nobody holds locked, and links that are a minute old (a link cannot be
/// locked; who made one takes no time to rename it, and makes another when it
/// is gone). Never throws: what cannot be removed stays.
void remove_leftovers(const std::filesystem::path& path) noexcept;

}  // namespace penstock
