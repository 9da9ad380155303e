#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "penstock/session/session.h"

namespace penstock {

/// Writes a file in the stream format of Arrow IPC with one column, lists of
/// int32, as https://arrow.apache.org/docs/format/Columnar.html describes it:
/// plain, without compression, buffers at multiples of 64 bytes, so that a
/// reader maps it and converts nothing. One thread's.
class ArrowListStream {
 public:
  ArrowListStream(const std::filesystem::path& path, const std::string& column);

  void append(std::span<const std::int32_t> row);
  /// The file is there, whole; gives its size.
  std::int64_t commit();

 private:
  /// Rows, and elements, of a record batch. An offset counts to 2^31.
  static constexpr std::size_t kRows = 1000;
  static constexpr std::size_t kElements = std::size_t{1} << 22;

  void write_message(const std::string& metadata);
  void write_batch();

  BufferedFile file_;
  std::vector<std::int32_t> offsets_ = {0}, values_;
};

}  // namespace penstock
