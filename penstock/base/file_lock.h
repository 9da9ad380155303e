#pragma once

#include <filesystem>
#include <functional>

namespace penstock {

/// A turn that one process has at a time: a lock (flock) on an empty file,
/// which is there while the turn lasts. The system ends the turn of a process
/// that is killed; its file stays and is in nobody's way. One thread's.
class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False where another process, or another lock of this one, has the turn.
  /// Where the file system has no locks or the file cannot be made, nobody can
  /// wait for anybody: true.
  bool try_take(const std::filesystem::path& path);
  /// Waits for the turn. `before_wait` is called before each look at the lock
  /// but the first, with how often it was called; what it throws ends the
  /// waiting. True where it waited.
  bool take(const std::filesystem::path& path,
            const std::function<void(int times)>& before_wait);
  /// It is this one's turn.
  bool held() const { return file_ >= 0; }
  /// The file was there before the turn was taken: a process that had the turn
  /// may have been killed.
  bool was_left() const { return was_left_; }
  void give_back();

 private:
  std::filesystem::path path_;  // empty: there is nothing to give back
  int file_ = -1;
  bool was_left_ = false;
};

}  // namespace penstock
