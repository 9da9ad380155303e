#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// The bytes of a sound file, in memory or in an open file. A reader with one
/// owner.
///
/// A header that lacks the length of the sound is completed in what is read,
/// not in the file.
class SoundBytes {
 public:
  SoundBytes() = default;
  ~SoundBytes() { close(); }
  SoundBytes(const SoundBytes&) = delete;
  SoundBytes& operator=(const SoundBytes&) = delete;

  /// `bytes` must outlive the next open.
  void open(std::span<const std::byte> bytes);
  /// Returns what is wrong; empty: nothing.
  std::string open_path(const std::string& path);

  std::int64_t size() const { return size_; }
  /// Returns how many bytes were read: fewer than asked for only at the end.
  std::size_t read(std::int64_t at, std::span<std::byte> to);

  /// Bytes that are not there are 0.
  std::uint8_t byte(std::int64_t at);
  std::uint64_t big(std::int64_t at, int bytes);
  std::uint64_t little(std::int64_t at, int bytes);
  bool has(std::int64_t at, std::string_view text);

  /// From now on `bytes` are read at `at` in place of the file's own.
  void replace(std::int64_t at, std::string bytes);
  /// From now on `size` bytes are read: zeros follow the file, or its last
  /// bytes are left out.
  void resize(std::int64_t size);

 private:
  void close();
  std::size_t read_file(std::int64_t at, std::span<std::byte> to);

  int file_ = -1;                           // -1: in memory
  std::span<const std::byte> memory_ = {};  // the whole file, where in memory
  std::int64_t bytes_ = 0, size_ = 0;       // of the file; that are read
  std::string other_;                       // what is read from `other_at_` on
  std::int64_t other_at_ = 0;

  std::vector<std::byte> window_;  // what byte() looks at
  std::int64_t window_at_ = 0;
};

}  // namespace penstock
