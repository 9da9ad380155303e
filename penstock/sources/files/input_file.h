#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "penstock/base/file.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/files/object_store.h"
#include "penstock/sources/stop.h"

namespace penstock::files {

/// A data file that is open for reading, on a disk or in an object store.
/// Thread-safe. `file` must outlive it.
class InputFile {
 public:
  /// Throws Error(source): files.unreadable, files.store.
  explicit InputFile(const DataFile& file);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Reads some of the bytes from `offset` on; 0: none. Throws as
  /// the constructor.
  std::size_t read(std::int64_t offset, std::span<char> to) const;

 private:
  const DataFile& file_;
  const std::unique_ptr<StoredFile> stored_;
  const int number_;
};

/// A folder for temporary files: on a disk, where there is one.
std::filesystem::path scratch_folder();

/// A file of an object store, copied to a temporary file without a name. Not
/// for an empty one.
std::unique_ptr<FileMapping> copied_here(const DataFile& file, StopFlag stop);

}  // namespace penstock::files
