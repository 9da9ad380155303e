#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "penstock/base/base.h"

namespace penstock {

/// A file that is written in large pieces. One thread's.
class BufferedFile {
 public:
  explicit BufferedFile(const std::filesystem::path& path)
      : file_(real_files().create(path)) {}

  void append(std::span<const std::byte> bytes) {
    bytes_ += std::ssize(bytes);
    held_.append(bytes.data(), bytes.size());
    if (held_.size() >= kPiece) flush();
  }
  template <class Number>
  void append_number(Number number) {
    append(std::as_bytes(std::span(&number, 1)));
  }
  void append_zeros(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) append_number(std::uint8_t{0});
  }
  std::int64_t bytes() const { return bytes_; }
  /// The file is there, whole; gives its size.
  std::int64_t commit() {
    flush();
    file_->commit(Lasting::now);
    return bytes_;
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  void flush() {
    file_->append(held_.span());
    held_.clear();
  }
  std::unique_ptr<FileWriter> file_;
  Bytes held_;
  std::int64_t bytes_ = 0;
};

}  // namespace penstock
