#include "penstock/sources/hdf5/indexer.h"

#include <algorithm>
#include <filesystem>

#include "penstock/base/log.h"

namespace penstock::hdf5 {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

}  // namespace

// Files that are mapped are indexed without what they map in turn: a virtual
// data set over another one is refused, so one level is enough and cycles of
// files cannot recurse.
std::shared_ptr<const IndexedFile> Indexer::index(const files::DataFile& file,
                                                  bool with_mapped) {
  // One file may have several paths.
  const std::string path = fs::weakly_canonical(file.path).string();
  if (const auto known = known_.find(path); known != known_.end())
    return known->second;
  auto indexed = std::make_shared<IndexedFile>();
  indexed->data = file;
  indexed->index = process_.index(file);
  if (with_mapped) add_mapped(*indexed);
  return known_[path] = std::move(indexed);
}

void Indexer::add_mapped(IndexedFile& file) {
  for (const DataSet& set : file.index.sets)
    for (const Mapping& mapping : set.mappings) {
      if (mapping.file == "." || file.file_of(mapping) != nullptr) continue;
      const std::string path = place_of(file, mapping);
      if (!path.empty())
        file.mapped.emplace_back(
            mapping.file, index(files::file_at(path, mapping.file), false));
    }
}

/// Beside the file, or, where that is a copy, beside what was copied (as a
/// copy, where it was copied, too); empty: it is not there.
std::string Indexer::place_of(const IndexedFile& file,
                              const Mapping& mapping) const {
  const fs::path beside = fs::path(file.data.path).parent_path() / mapping.file;
  if (is_file(beside)) return beside.string();
  for (const auto& [copy, original] : copied_from_) {
    if (!file.data.path.starts_with(copy + "/")) continue;
    const fs::path there =
        (fs::path(original) / file.data.path.substr(copy.size() + 1))
            .parent_path() /
        mapping.file;
    if (is_file(there)) return copy_of(there.lexically_normal().string());
  }
  return {};
}

std::string Indexer::copy_of(const std::string& original) const {
  for (const auto& [copy, folder] : copied_from_)
    if (original.starts_with(folder + "/")) {
      std::string copied = copy + original.substr(folder.size());
      if (is_file(copied)) return copied;
    }
  return original;
}

void warn_of_rows_twice(
    const std::vector<std::shared_ptr<const IndexedFile>>& files) {
  for (const auto& file : files) {
    if (file == nullptr) continue;
    for (const auto& [name, mapped] : file->mapped)
      if (std::ranges::find(files, mapped) != files.end()) {
        log(LogLevel::warning,
            "'" + file->data.path + "' has rows of '" + mapped->data.path +
                "', which is read too, so these rows come twice; name only one "
                "of the two files as source.path");
        return;
      }
  }
}

}  // namespace penstock::hdf5
