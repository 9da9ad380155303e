#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/files/data_files.h"
#include "penstock/sources/hdf5/index.h"

namespace penstock::hdf5 {

/// A file with its index, and those that its virtual data sets name. Immutable.
struct IndexedFile {
  files::DataFile data;
  FileIndex index;
  /// By the name that a mapping gives; "." is this file.
  std::vector<std::pair<std::string, std::shared_ptr<const IndexedFile>>>
      mapped = {};

  /// The file that a mapping names. Null: it is not there.
  const IndexedFile* file_of(const Mapping& mapping) const {
    if (mapping.file == ".") return this;
    for (const auto& [name, file] : mapped)
      if (name == mapping.file) return file.get();
    return nullptr;
  }
};

}  // namespace penstock::hdf5
