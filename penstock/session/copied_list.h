#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// "copied.jsonl" in the folder of a copy: a line about the source, then one a
/// file that is copied: "to", "version" of the original, "bytes", "changed_ns",
/// "hash" (see copy_file()). A line that was cut off counts for nothing. One
/// thread's.
class CopiedList {
 public:
  /// Reads it; if none exists, nothing is copied.
  explicit CopiedList(const std::filesystem::path& folder);

  /// Begins the list of a copy, or continues with it: makes the folder, and
  /// removes what is in it and in none of `files`.
  static void begin(const std::filesystem::path& folder, const SourceSpec& spec,
                    const std::vector<StagedFile>& files);
  /// For prune_copies(): when it was last used.
  static void used_now(const std::filesystem::path& folder);

  /// This version of the file is there, as it was copied.
  bool holds(const StagedFile& file) const;
  /// Throws Error(request).
  void add(const StagedFile& file, std::uint64_t hash);

 private:
  struct Entry {
    std::string version;
    std::int64_t bytes = 0, changed_ns = 0;
  };
  std::filesystem::path folder_;
  std::map<std::string, Entry> entries_;
};

/// Removes the copies of a folder that were not used for so long; with `dry`
/// nothing is. "dir", "removed": a list of "path", "bytes", "used" (UTC),
/// "source" (its section), with "failed" where the system refused; "bytes" of
/// those that are gone, "kept": how many are left.
Json prune_copies(const std::filesystem::path& dir,
                  std::chrono::system_clock::duration unused, bool dry);

}  // namespace penstock
