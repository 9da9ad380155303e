#include "penstock/sources/zarr/zarr_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "penstock/base/folder.h"
#include "penstock/base/formatted.h"
#include "penstock/sources/files/array_file.h"
#include "penstock/sources/zarr/chunk_reader.h"

namespace penstock::zarr {
namespace {

namespace fs = std::filesystem;

using files::refuse_path;

std::vector<std::string> matches_of(const std::string& pattern) {
  ::glob_t found{};
  std::vector<std::string> all;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    all.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return all;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code error;
  for (FolderEntry& entry : entries_of(folder, error))
    all.push_back(std::move(entry.path));
  if (error)
    refuse_path("files.unreadable", folder.string(), error.message(),
                "check the permissions of this folder");
  std::ranges::sort(all);
  return all;
}

/// The sizes and times of all files of a store are those of the data.
files::DataFile store_at(const std::string& path, std::string relative) {
  files::DataFile store{.path = path, .relative = std::move(relative)};
  std::vector<std::pair<std::string, FileStamp>> all;
  std::error_code error;
  each_below(path, error, [&](const FolderEntry& entry) {
    struct stat found {};
    if (::stat(entry.path.c_str(), &found) != 0 || !S_ISREG(found.st_mode))
      return entry.is_folder();
    const FileStamp stamp = stamp_of(found);
    store.bytes += stamp.bytes;
    store.changed_ns = std::max(store.changed_ns, stamp.modified_ns);
    all.emplace_back(entry.path.string(), stamp);
    return false;
  });
  std::ranges::sort(all, {}, &std::pair<std::string, FileStamp>::first);
  FileStamps stamps;
  for (const auto& file : all) stamps.add(file.second);
  store.stamps = stamps.hex();
  return store;
}

void add_stores(const std::string& path, std::vector<files::DataFile>& to) {
  std::error_code unknown;
  std::string plain = path;
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  if (plain.ends_with(".zip"))
    refuse_path("files.none", path, "zarr in .zip files is not supported",
                "unpack the file into a folder");
  if (is_node(plain)) {
    to.push_back(store_at(plain, fs::path(plain).filename().string()));
    return;
  }
  if (!fs::is_directory(plain, unknown)) {
    std::size_t before = to.size();
    for (const std::string& match : matches_of(plain))
      if (is_node(match))
        to.push_back(store_at(match, fs::path(match).filename().string()));
    if (to.size() == before)
      refuse_path("files.missing", path, "no zarr store has this name",
                  "name a folder with .zarray, .zgroup or zarr.json in it");
    return;
  }
  const std::size_t before = to.size();
  for (const fs::path& entry : sorted_entries(plain))
    if (entry.filename().string().ends_with(".zarr") && is_node(entry.string()))
      to.push_back(store_at(entry.string(), entry.filename().string()));
  if (to.size() == before)
    refuse_path("files.none", path,
                "the folder is not a zarr store, and holds no zarr store whose "
                "name ends with .zarr",
                "name a folder with .zarray, .zgroup or zarr.json in it");
}

using Arrays = std::vector<std::shared_ptr<const files::RowArray>>;

/// What was never written is the fill value: so much of it, in so many chunks
/// for each that was written, is a size that is damaged.
void check_written(ZarrArray& array) {
  constexpr double kMostAbsentBytes = 1 << 30, kMostAbsent = 1000;
  files::ArrayInfo& info = array.layout.info;
  double files = 1, file_bytes = static_cast<double>(array.item_bytes());
  for (std::size_t d = 0; d < array.shard.size(); ++d) {
    files *= std::ceil(static_cast<double>(info.shape[d]) /
                       static_cast<double>(array.shard[d]));
    file_bytes *= static_cast<double>(array.shard[d]);
  }
  if (info.items == files::ArrayItems::unread ||
      files * file_bytes <= kMostAbsentBytes)
    return;
  double written = 0;
  std::error_code error;
  each_below(array.place, error, [&](const FolderEntry& entry) {
    const std::string name = entry.path.filename().string();
    if (entry.is_folder()) return true;
    if (!name.starts_with('.') && !name.ends_with(".json")) ++written;
    return false;
  });
  const double absent = files - written;
  if (absent * file_bytes <= kMostAbsentBytes ||
      absent <= kMostAbsent * written)
    return;
  info.items = files::ArrayItems::unread;
  info.why = formatted(
      "only %.0f of its %.0f chunks were written: the size of the array is "
      "damaged",
      written, files);
}

/// Arrays are found by their folders, so that consolidated metadata are not
/// needed.
void add_arrays(const std::string& folder, const std::string& name, Arrays& to,
                StopFlag stop) {
  end_if_stopped(stop);
  if (!is_node(folder)) return;
  if (auto array = read_array(folder, name.empty() ? "/" : name)) {
    check_written(*array);
    if (!array->layout.info.shape.empty())
      to.push_back(make_chunked_array(std::move(*array)));
    return;
  }
  constexpr std::size_t kDeepest = 2048;  // letters; a link may lead back
  if (name.size() > kDeepest) return;
  std::error_code unknown;
  for (const fs::path& entry : sorted_entries(folder))
    if (fs::is_directory(entry, unknown))
      add_arrays(entry.string(), name + "/" + entry.filename().string(), to,
                 stop);
}

}  // namespace

std::vector<files::DataFile> find_stores(const SourceSpec& spec,
                                         const SourceKind&) {
  std::vector<files::DataFile> all;
  for (const std::string& path : paths_of(spec)) add_stores(path, all);
  return all;
}

std::vector<std::shared_ptr<const files::RowFile>> open_stores(
    const SourceSpec&, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  return files::open_each(data, stop, [&](const files::DataFile& store) {
    Arrays arrays;
    add_arrays(store.path, "", arrays, stop);
    if (arrays.empty())
      refuse_path("files.none", store.path, "the store has no array with rows",
                  "write arrays with at least one dimension");
    return files::make_array_file(store.path, std::move(arrays));
  });
}

}  // namespace penstock::zarr
