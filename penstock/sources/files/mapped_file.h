#pragma once

#include <memory>
#include <span>

#include "penstock/base/file.h"
#include "penstock/sources/files/data_files.h"

namespace penstock::files {

/// All bytes of a file, which are read when they are looked at. One that is
/// empty has none. Copies share the mapping.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const DataFile& file) {
    if (file.bytes > 0) mapping_ = map_data_file(file.path);
  }

  std::span<const std::byte> bytes() const {
    return mapping_ == nullptr ? std::span<const std::byte>()
                               : mapping_->bytes();
  }
  /// What keeps the bytes, for blocks that borrow some.
  const std::shared_ptr<const FileMapping>& owner() const { return mapping_; }

 private:
  std::shared_ptr<const FileMapping> mapping_;
};

}  // namespace penstock::files
