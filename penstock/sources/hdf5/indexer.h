#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/hdf5/index_process.h"
#include "penstock/sources/hdf5/indexed_file.h"
#include "penstock/sources/stop.h"

namespace penstock::hdf5 {

/// Indexes files, and those that their virtual data sets name, each once.
class Indexer {
 public:
  /// `copied_from` as FileSettings has it.
  Indexer(std::vector<std::pair<std::string, std::string>> copied_from,
          StopFlag stop)
      : copied_from_(std::move(copied_from)), process_(stop) {}

  std::shared_ptr<const IndexedFile> index(const files::DataFile& file,
                                           bool with_mapped = true);

 private:
  void add_mapped(IndexedFile& file);
  std::string place_of(const IndexedFile& file, const Mapping& mapping) const;
  /// The copy of a file, where it was copied; else itself.
  std::string copy_of(const std::string& original) const;

  const std::vector<std::pair<std::string, std::string>> copied_from_;
  IndexProcess process_;
  std::map<std::string, std::shared_ptr<const IndexedFile>> known_;
};

/// Warns of files whose rows come twice, as a virtual data set has them, too.
void warn_of_rows_twice(
    const std::vector<std::shared_ptr<const IndexedFile>>& files);

}  // namespace penstock::hdf5
