#include "penstock/inspect/hf_datasets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "penstock/base/base.h"
#include "penstock/base/folder.h"
#include "penstock/job/job.h"
#include "penstock/session/session.h"

// The hub's cache: datasets--ORG--NAME/ with blobs/ (the files, named by their
// hashes), snapshots/COMMIT/ (links to them, or files where there are no links)
// and refs/. The cache of `datasets`: NAME/CONFIG/VERSION/HASH/ with Arrow
// streams, dataset_info.json, and results of map() as cache-*.arrow. Folders of
// save_to_disk(): state.json and dataset_info.json, or dataset_dict.json over
// such folders.

namespace penstock {
namespace {

namespace fs = std::filesystem;
using Time = std::chrono::system_clock::time_point;

struct FoundSet {
  std::string name, origin, config;
  fs::path path;
  std::vector<std::string> splits;
  std::optional<std::int64_t> rows;
  std::int64_t bytes = 0;
  std::set<std::string> formats;
  std::string why;  // it is not complete; empty: it is
  Time used;
  std::vector<fs::path> files;  // of data, the largest first
  Drive drive;
  std::vector<std::string> jobs;

  Json json() const {
    Json json;
    json["name"] = name;
    json["origin"] = origin;
    json["path"] = path.string();
    json["config"] = config.empty() ? Json() : Json(config);
    json["splits"] = list(splits);
    json["rows"] = rows ? Json(*rows) : Json();
    json["bytes"] = bytes;
    json["formats"] = list(formats);
    json["complete"] = why.empty();
    if (!why.empty()) json["why"] = why;
    json["used"] = utc_text(used);
    json["drive"] = drive.mount;
    json["jobs"] = list(jobs);
    return json;
  }

  template <class Texts>
  static Json list(const Texts& texts) {
    Json made(Json::Array{});
    for (const std::string& text : texts) made.push_back(text);
    return made;
  }
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Entries of a folder by name; none where it cannot be read.
std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code unreadable;
  for (FolderEntry& entry : entries_of(folder, unreadable))
    entries.push_back(std::move(entry.path));
  std::ranges::sort(entries);
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}
bool is_there(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

/// "parquet" of a.parquet, "jsonl" of a.jsonl.zst; empty: it is no data.
std::string format_of(const fs::path& path) {
  fs::path name = path.filename();
  if (name.extension() == ".zst" || name.extension() == ".gz")
    name = name.stem();
  std::string end = name.extension().string();
  if (end.empty() || end == ".md" || end == ".py" || end == ".lock") return {};
  end.erase(0, 1);
  if (name == "dataset_info.json" || name == "state.json" ||
      name == "dataset_dict.json" || name == ".gitattributes")
    return {};
  return end;
}

/// Adds a file's bytes and times; each is counted once, however it is linked.
/// Of a file with several links (a blob and its snapshots) the bytes count
/// once, by device and inode. Access times are put back, as otherwise a listing
/// would make every data set look as if it had just been used.
class Sizes {
 public:
  void add(const fs::path& path, FoundSet& to) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return;
    if (!seen_.emplace(file.st_dev, file.st_ino).second) return;
    to.bytes += file.st_size;
    sized_.emplace_back(file.st_size, path);
    // What is read to look at a data set does not count as a use of it.
    if (format_of(path).empty() && path.parent_path().filename() != "blobs")
      return;
    const auto used = std::max(file.st_atime, file.st_mtime);
    to.used = std::max(to.used, std::chrono::system_clock::from_time_t(used));
    times_.emplace_back(path, file.st_atim);
  }
  /// Puts back when files were last read, after they have been looked at.
  void forget_reading() const {
    for (const auto& [path, read] : times_) {
      const timespec times[] = {read, {0, UTIME_OMIT}};
      ::utimensat(AT_FDCWD, path.c_str(), times, 0);  // of the user's own files
    }
  }
  void give(FoundSet& to) {
    std::ranges::sort(sized_, std::greater());
    for (auto& [bytes, path] : sized_) to.files.push_back(std::move(path));
  }

 private:
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::vector<std::pair<std::int64_t, fs::path>> sized_;
  std::vector<std::pair<fs::path, timespec>> times_;
};

std::vector<fs::path> all_below(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code unreadable;
  each_below(folder, unreadable, [&](const FolderEntry& entry) {
    all.push_back(entry.path);
    return entry.is_folder() && ::access(entry.path.c_str(), R_OK) == 0;
  });
  return all;
}

/// A JSON file of a library; null where it is not there or damaged.
Json read_json(const fs::path& path) {
  if (!is_there(path)) return {};
  try {
    Json made = Json::parse(real_files().read(path), path.string());
    return made.is_object() ? made : Json();
  } catch (const Error&) {
    return {};
  }
}

/// What dataset_info.json says of splits and rows.
void add_info(const Json& info, FoundSet& to) {
  if (!info.is_object()) return;
  const Json* splits = info.find("splits");
  if (splits == nullptr || !splits->is_object()) return;
  std::int64_t rows = 0;
  for (const auto& [name, split] : splits->object()) {
    to.splits.push_back(name);
    const Json* count =
        split.is_object() ? split.find("num_examples") : nullptr;
    if (count == nullptr ||
        !std::holds_alternative<std::int64_t>(count->value()))
      return;
    rows += count->integer();
  }
  to.rows = rows;
}

/// Rows of files that say how many they have; none where the part that reads
/// them is not there, or a file is damaged.
std::optional<std::int64_t> counted_rows(const std::string& kind,
                                         const fs::path& path) {
  try {
    Json section;
    section["kind"] = kind;
    section["path"] = path.string();
    return open_source(parse_source_spec(section, "source"), {}, {})
        ->count()
        .rows;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string hub_name(const std::string& folder) {
  std::string name = folder.substr(std::string("datasets--").size());
  if (const std::size_t at = name.find("--"); at != name.npos)
    name.replace(at, 2, "/");
  return name;
}

/// The commit that "main" names, else any snapshot.
fs::path snapshot_of(const fs::path& repository) {
  const fs::path main = repository / "refs" / "main";
  if (is_there(main)) {
    std::string commit = real_files().read(main);
    while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' '))
      commit.pop_back();
    if (is_folder(repository / "snapshots" / commit))
      return repository / "snapshots" / commit;
  }
  const std::vector<fs::path> all = sorted_entries(repository / "snapshots");
  return all.empty() ? fs::path() : all.back();
}

FoundSet hub_repository(const fs::path& path) {
  FoundSet found{.name = hub_name(path.filename().string()),
                 .origin = "hub",
                 .path = path};
  Sizes sizes;
  for (const fs::path& file : all_below(path)) {
    std::error_code unknown;
    if (file.extension() == ".incomplete")
      found.why = "a download was interrupted: " + file.filename().string();
    const bool link = fs::is_symlink(file, unknown);
    if (link && !fs::exists(file, unknown))
      found.why = "a file is missing: " + file.filename().string();
    sizes.add(file, found);
    const bool in_snapshot =
        file.string().find("/snapshots/") != std::string::npos;
    if (std::string of = format_of(file);
        !of.empty() && in_snapshot && !is_folder(file))
      found.formats.insert(of);
  }
  const fs::path snapshot = snapshot_of(path);
  if (snapshot.empty() && found.why.empty())
    found.why = "the data set has no snapshot";
  if (!snapshot.empty() && found.why.empty() &&
      found.formats.contains("parquet"))
    found.rows = counted_rows("parquet", snapshot);
  sizes.forget_reading();
  sizes.give(found);
  return found;
}

/// "train" of NAME-train.arrow and of NAME-train-00000-of-00002.arrow.
std::string split_of(const fs::path& file, const std::string& name) {
  std::string stem = file.stem().string();
  if (const std::size_t of = stem.rfind("-of-"); of != stem.npos && of >= 6)
    stem.resize(of - 6);
  return stem.starts_with(name + "-") ? stem.substr(name.size() + 1) : "";
}

/// A folder of the cache that holds Arrow streams.
FoundSet cached_set(const fs::path& path, const fs::path& root) {
  const fs::path below = path.lexically_relative(root);
  std::vector<std::string> parts;
  for (const fs::path& part : below) parts.push_back(part.string());
  FoundSet found{.origin = "cache", .path = path};
  found.name = parts.empty() ? path.filename().string() : parts[0];
  const std::string file_name = found.name.substr(
      found.name.find("___") == std::string::npos ? 0
                                                  : found.name.find("___") + 3);
  if (const std::size_t at = found.name.find("___"); at != std::string::npos)
    found.name.replace(at, 3, "/");
  if (parts.size() > 1) found.config = parts[1];
  add_info(read_json(path / "dataset_info.json"), found);
  std::set<std::string> splits;
  Sizes sizes;
  for (const fs::path& file : sorted_entries(path)) {
    sizes.add(file, found);
    if (file.extension() != ".arrow") continue;
    found.formats.insert("arrow");
    if (std::string split = split_of(file, file_name); !split.empty())
      splits.insert(split);
  }
  if (found.splits.empty()) found.splits.assign(splits.begin(), splits.end());
  if (path.string().ends_with(".incomplete"))
    found.why = "making the copy was interrupted";
  else if (!is_there(path / "dataset_info.json"))
    found.why = "dataset_info.json is missing";
  sizes.give(found);
  return found;
}

FoundSet saved_set(const fs::path& path) {
  FoundSet found{
      .name = path.filename().string(), .origin = "folder", .path = path};
  const Json dict = read_json(path / "dataset_dict.json");
  if (dict.is_object())
    if (const Json* splits = dict.find("splits");
        splits != nullptr && splits->is_array())
      for (const Json& split : splits->array())
        if (split.is_string()) found.splits.push_back(split.string());
  Sizes sizes;
  for (const fs::path& file : all_below(path)) {
    if (is_folder(file)) continue;
    sizes.add(file, found);
    if (file.extension() == ".arrow") found.formats.insert("arrow");
  }
  std::vector<fs::path> parts = {path};
  if (!found.splits.empty()) {
    parts.clear();
    for (const std::string& split : found.splits) parts.push_back(path / split);
  }
  std::int64_t rows = 0;
  bool known = true;
  for (const fs::path& part : parts) {
    if (!is_there(part / "state.json") ||
        !is_there(part / "dataset_info.json")) {
      found.why =
          "state.json or dataset_info.json is missing in " + part.string();
      continue;
    }
    const auto count = counted_rows("hf", part);
    known = known && count;
    rows += count.value_or(0);
  }
  if (known && found.why.empty()) found.rows = rows;
  sizes.forget_reading();
  sizes.give(found);
  return found;
}

std::vector<FoundSet> in_hub(const fs::path& folder) {
  std::vector<FoundSet> all;
  for (const fs::path& path : sorted_entries(folder))
    if (path.filename().string().starts_with("datasets--") && is_folder(path))
      all.push_back(hub_repository(path));
  return all;
}

std::vector<FoundSet> in_cache(const fs::path& folder) {
  std::vector<FoundSet> all;
  std::set<fs::path> sets;
  for (const fs::path& name : sorted_entries(folder)) {
    if (name.filename() == "downloads" || !is_folder(name)) continue;
    for (const fs::path& file : all_below(name))
      if (file.extension() == ".arrow" ||
          file.filename() == "dataset_info.json" ||
          file.filename().string().ends_with(".incomplete"))
        sets.insert(is_folder(file) ? file : file.parent_path());
  }
  for (const fs::path& path : sets) all.push_back(cached_set(path, folder));
  return all;
}

void find_saved(const fs::path& folder, int depth, std::vector<FoundSet>& all) {
  constexpr int kDeepest = 6;
  if (is_saved_dataset(folder.string())) {
    all.push_back(saved_set(folder));
    return;
  }
  if (depth == kDeepest) return;
  for (const fs::path& path : sorted_entries(folder)) {
    std::error_code unknown;
    const bool hidden = path.filename().string().starts_with(".");
    if (!hidden && is_folder(path) && !fs::is_symlink(path, unknown))
      find_saved(path, depth + 1, all);
  }
}

std::string real_path(const fs::path& path) {
  std::error_code unknown;
  return fs::weakly_canonical(path, unknown).string();
}

/// The paths that a source reads, its parts' too.
void add_paths(const Json& source, std::vector<std::string>& paths) {
  if (source.is_array())
    for (const Json& one : source.array()) add_paths(one, paths);
  if (!source.is_object()) return;
  for (const auto& [key, value] : source.object()) {
    if (key == "source" || key == "sources") add_paths(value, paths);
    if (key != "path") continue;
    if (value.is_string()) paths.push_back(real_path(value.string()));
    if (value.is_array())
      for (const Json& one : value.array())
        if (one.is_string()) paths.push_back(real_path(one.string()));
  }
}

void add_job(const fs::path& job, std::vector<FoundSet>& all) {
  std::vector<std::string> paths;
  add_paths(read_job(job.string(), {}), paths);
  for (FoundSet& found : all) {
    const std::string its = real_path(found.path);
    for (const std::string& path : paths)
      if (path == its || path.starts_with(its + "/") ||
          its.starts_with(path + "/")) {
        found.jobs.push_back(job.string());
        break;
      }
  }
}

/// The drives that they lie on, each measured over files of all of them.
std::vector<Drive> find_drives(std::vector<FoundSet>& all, bool measure) {
  const std::string mounts = read_mounts();
  std::map<std::string, Drive> drives;
  std::map<std::string, std::vector<fs::path>> files;
  for (FoundSet& found : all) {
    found.drive = drive_of(found.path, mounts);
    drives.emplace(found.drive.mount, found.drive);
    std::vector<fs::path>& of = files[found.drive.mount];
    of.insert(of.end(), found.files.begin(), found.files.end());
  }
  std::vector<Drive> made;
  for (auto& [mount, drive] : drives) {
    if (measure && !drive.in_memory())
      drive.bytes_per_s = read_rate(files[mount]);
    made.push_back(drive);
  }
  return made;
}

Json document(const char* list, const std::vector<FoundSet>& all) {
  Json json;
  json[list] = Json(Json::Array{});
  std::int64_t bytes = 0;
  for (const FoundSet& found : all) {
    json[list].push_back(found.json());
    bytes += found.bytes;
  }
  json["bytes"] = bytes;
  return json;
}

}  // namespace

HfFolders default_hf_folders() {
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) {
    const std::string home = variable("HOME");
    if (home.empty()) return {};
    cache = home + "/.cache";
  }
  const std::string set = variable("HF_HOME");
  const fs::path home =
      set.empty() ? fs::path(cache) / "huggingface" : fs::path(set);
  const fs::path hub = variable("HF_HUB_CACHE");
  const fs::path datasets = variable("HF_DATASETS_CACHE");
  return {.hub = hub.empty() ? home / "hub" : hub,
          .datasets = datasets.empty() ? home / "datasets" : datasets};
}

Json find_datasets(const DatasetSearch& search) {
  std::vector<FoundSet> all;
  auto add = [&](std::vector<FoundSet> more) {
    std::ranges::move(more, std::back_inserter(all));
  };
  if (!search.folders.hub.empty()) add(in_hub(search.folders.hub));
  if (!search.folders.datasets.empty()) add(in_cache(search.folders.datasets));
  for (const fs::path& folder : search.more) {
    if (!is_folder(folder))
      throw Error(ErrorKind::request,
                  {.code = "datasets.no_folder",
                   .what = "cannot look for data sets",
                   .where = folder.string(),
                   .why = "there is no such folder",
                   .next = "name an existing folder or a job file"});
    find_saved(folder, 0, all);
  }
  for (const fs::path& job : search.jobs) add_job(job, all);
  const std::vector<Drive> drives = find_drives(all, search.measure);
  Json json = document("datasets", all);
  json["drives"] = Json(Json::Array{});
  for (const Drive& drive : drives) json["drives"].push_back(drive.json());
  return json;
}

Json prune_datasets(const HfFolders& folders, const std::string& origin,
                    std::chrono::system_clock::duration unused, bool dry) {
  const bool hub = origin == "hub";
  const fs::path& root = hub ? folders.hub : folders.datasets;
  std::vector<FoundSet> all = hub ? in_hub(root) : in_cache(root);
  const Time now = std::chrono::system_clock::now();
  const auto before = all.size();
  std::erase_if(all, [&](const FoundSet& found) {
    const auto age = now - found.used;
    const bool abandoned = !found.why.empty() && age > std::chrono::hours(24);
    return age < unused && !abandoned;
  });
  const std::string mounts = read_mounts();
  std::int64_t bytes = 0;
  Json removed(Json::Array{});
  for (FoundSet& found : all) {
    found.drive = drive_of(found.path, mounts);
    Json entry = found.json();
    std::error_code failed;
    if (!dry) remove_tree(found.path, failed);
    if (failed)
      entry["failed"] = failed.message();
    else
      bytes += found.bytes;
    removed.push_back(std::move(entry));
  }
  Json json;
  json["dir"] = root.string();
  json["removed"] = std::move(removed);
  json["bytes"] = bytes;
  json["kept"] = static_cast<std::int64_t>(before - all.size());
  return json;
}

}  // namespace penstock
