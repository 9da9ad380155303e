#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/file_stamp.h"
#include "penstock/transforms/field_kind.h"

namespace penstock {

/// A list of files as bytes, and back: each stamp as a uint64 in the byte order
/// of the machine, then the path and a '\0'. `of` throws Error(internal) for
/// bytes that are no such list.
Bytes bytes_of(std::span<const NamedFile> files);
std::vector<NamedFile> named_files_of(std::span<const std::byte> bytes);

/// The first of these files that is not as it was when it was read: its path.
/// Empty: all are the same. Looks at the files on several threads.
std::string changed_file(std::span<const NamedFile> files);

/// Notes of a parser that reads the files whose paths a column holds. One
/// thread's.
class FileNotes final : public FieldNotes {
 public:
  /// A file that was just read, or is missing. Calls for one file that follow
  /// one another count once.
  void add(std::string path, const std::optional<FileStamp>& stamp);
  bool empty() const { return files_.empty(); }

  void merge(FieldNotes& other) override;
  Bytes saved() const override { return bytes_of(files_); }
  std::span<const NamedFile> files() const override { return files_; }

 private:
  friend std::unique_ptr<FieldNotes> file_notes_of(std::span<const std::byte>);

  std::vector<NamedFile> files_;
  std::size_t unique_ = 1024;  // of them, when they were counted last
};

/// What FileNotes::saved() gave; null if one of the files has changed since
/// then, so that the rows are parsed again.
std::unique_ptr<FieldNotes> file_notes_of(std::span<const std::byte> saved);

}  // namespace penstock
