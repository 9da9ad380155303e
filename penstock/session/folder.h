#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/base.h"

namespace penstock {

/// A folder that we write files into, made when it is missing. Its errors are
/// Error(request) and name the setting that chose it.
class OutputFolder {
 public:
  OutputFolder(FileSystem& files, std::filesystem::path path,
               std::string setting);

  const std::filesystem::path& path() const { return path_; }
  /// The file is whole or as it was before.
  void write(const std::string& name, const std::string& bytes,
             Lasting lasting = Lasting::now);
  /// The same of pieces that need not be in one place.
  void write(const std::string& name,
             const std::vector<std::span<const std::byte>>& pieces,
             Lasting lasting);
  void append(const std::string& name, const std::string& lines,
              Readers readers = Readers::as_umask);
  /// A file that cannot be removed stays: the log reports it.
  void remove(const std::string& name);
  /// Gives the file a second name, in place of a file that has it; the first
  /// name stays but on drives without hard links.
  void keep_as(const std::string& name, const std::string& second);
  /// Points `name` at `target`, which lies in this folder.
  void link(const std::string& name, const std::filesystem::path& target);

 private:
  template <class Work>
  void named(Work work) const;

  FileSystem& files_;
  std::filesystem::path path_;
  std::string setting_;
};

/// The folder that a run writes: DIR/<UTC time>-<hex>, with DIR/latest
/// pointing at the newest that has taken a step. Every file is whole or not
/// there, but for the growing `steps.jsonl` and `quarantine.jsonl`.
class RunFolder {
 public:
  /// Makes the folder and writes `run.json` into it, which lasts with the first
  /// state. Throws Error(request) when `dir` cannot be written to, and then
  /// leaves nothing behind. `name`: of the folder in `dir`; empty: the time.
  RunFolder(FileSystem& files, const std::filesystem::path& dir,
            const Json& run, const std::string& name = "");

  /// What one of several ranks writes for itself: RUN/ranks/N, inside the
  /// folder of rank 0. It is never the latest.
  RunFolder(FileSystem& files, const std::filesystem::path& run, int rank);

  const std::filesystem::path& path() const { return folder_.path(); }
  /// Points DIR/latest at this folder: called after its first step, so that a
  /// run that ends before leaves the link where it was. Throws Error(request).
  void become_latest();
  /// Throws what become_latest() would, where something that is not a link has
  /// its name.
  void check_latest();
  /// Removes the folder, and the one around it where it made that: for a run
  /// that took no step. Never throws.
  void discard() noexcept;
  void write(const std::string& name, const Json& document,
             Lasting lasting = Lasting::now);
  void write_bytes(const std::string& name, const std::string& bytes,
                   Lasting lasting) {
    folder_.write(name, bytes, lasting);
  }
  void write_bytes(const std::string& name,
                   const std::vector<std::span<const std::byte>>& pieces,
                   Lasting lasting) {
    folder_.write(name, pieces, lasting);
  }
  void append(const std::string& name, const std::string& lines,
              Readers readers = Readers::as_umask);
  void remove(const std::string& name) { folder_.remove(name); }
  /// A folder inside of it, made when it is missing.
  OutputFolder inside(const std::string& name);

 private:
  FileSystem& files_;
  const bool of_rank_ = false;
  const bool makes_parent_;  // `dir` was not there
  OutputFolder folder_;
};

}  // namespace penstock
