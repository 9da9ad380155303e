#pragma once

#include <filesystem>
#include <string>

#include "penstock/base/base.h"

namespace penstock {

/// The folder that a run writes: DIR/<UTC time>-<hex>, with DIR/latest
/// pointing at the newest. Every file is whole or not there, but for the
/// growing `steps.jsonl` and `quarantine.jsonl`.
class RunFolder {
 public:
  /// Makes the folder and writes `run.json` into it. Throws Error(request)
  /// when `dir` cannot be written to.
  RunFolder(FileSystem& files, const std::filesystem::path& dir,
            const Json& run);

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const Json& document);
  void append(const std::string& name, const std::string& lines);

 private:
  FileSystem& files_;
  std::filesystem::path path_;
};

}  // namespace penstock
