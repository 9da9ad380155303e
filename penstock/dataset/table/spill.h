#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/file.h"
#include "penstock/dataset/table/block_parser.h"

namespace penstock {

/// Where the parsed values of a scan go once they take more host memory than it
/// may hold: files without names, so that nothing is left of a killed process.
///
/// Their pages are mapped, and so read again as memory is free; rows of one
/// file are in order of key, so that reading rows by ascending key goes through
/// each file once, from its begin to its end. Not thread-safe.
class Spill {
 public:
  /// The folder is made when something is written. `source` is for messages.
  Spill(FileSystem& files, std::filesystem::path folder, std::string source);

  /// Where it goes, for people: "more goes to temporary files in /var (12.0 GiB
  /// free)"; or why there is no such place: "no more: /tmp is in memory".
  std::string text() const;
  /// Why nothing can be written; empty: it can.
  const std::string& why_not() const { return why_not_; }

  /// The rows of all blocks in one, by ascending key, with their values in a
  /// file. Throws Error(request) where it cannot be written, and Error(source)
  /// for two rows with one key.
  ParsedBlock write(const std::vector<ParsedBlock>& blocks);

  std::size_t bytes() const { return bytes_; }  ///< of all that was written

 private:
  FileSystem& files_;
  const std::filesystem::path folder_;
  const std::string source_;
  std::optional<std::size_t> free_;
  std::string why_not_;
  std::size_t bytes_ = 0;
};

}  // namespace penstock
