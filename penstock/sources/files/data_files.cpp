#include "penstock/sources/files/data_files.h"

#include <fnmatch.h>
#include <strings.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/folder.h"

namespace penstock::files {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const std::string& name) {
  return name.starts_with('.') || name.starts_with('_');
}

bool is_of_kind(const SourceKind& kind, const std::string& name) {
  return std::ranges::any_of(kind.extensions, [&](const std::string& end) {
    return name.size() >= end.size() &&
           strcasecmp(name.c_str() + name.size() - end.size(), end.c_str()) ==
               0;
  });
}

// Hive's layout, "year=2024/month=05/part-0.parquet": each folder adds a
// column, whose values writers escape by percent signs.
void add_partitions(DataFile& file) {
  std::string_view rest = file.relative;
  for (std::size_t slash; (slash = rest.find('/')) != rest.npos;
       rest.remove_prefix(slash + 1)) {
    std::string_view folder = rest.substr(0, slash);
    std::size_t equals = folder.find('=');
    if (equals == folder.npos || equals == 0) continue;
    file.partitions.emplace_back(
        without_percent(std::string(folder.substr(0, equals))),
        without_percent(std::string(folder.substr(equals + 1))));
  }
}

DataFile stored(const std::shared_ptr<const ObjectStore>& store,
                const StoredObject& object, std::string relative) {
  return {.path = object.path,
          .relative = std::move(relative),
          .bytes = object.bytes,
          .changed_ns = object.changed_ns,
          .store = store};
}

std::string size_difference(std::int64_t now, std::int64_t then) {
  if (now == then)
    return "the file was written to, or its attributes have changed";
  return "the file has " + std::to_string(now) + " bytes, but had " +
         std::to_string(then);
}

bool has_hidden(std::string_view relative) {
  for (std::size_t at = 0; at < relative.size();) {
    std::size_t end = std::min(relative.find('/', at), relative.size());
    if (is_hidden(std::string(relative.substr(at, end - at)))) return true;
    at = end + 1;
  }
  return false;
}

/// All files below a folder of a store that `wanted` takes.
template <class Wanted>
std::vector<DataFile> stored_below(
    const std::shared_ptr<const ObjectStore>& store, const std::string& folder,
    Wanted wanted) {
  std::vector<DataFile> found;
  for (const StoredObject& object : store->list(folder)) {
    if (object.path.size() <= folder.size() + 1) continue;
    std::string relative = object.path.substr(folder.size() + 1);
    if (!has_hidden(relative) && wanted(relative))
      found.push_back(stored(store, object, std::move(relative)));
  }
  std::ranges::sort(found, {}, &DataFile::relative);
  return found;
}

/// What a URI of an object store names: a pattern, a file, a folder. A store
/// has no folders, only keys: a listing of "a/b" may be the object of that name
/// or all objects whose keys begin with "a/b/". One object of just this name is
/// the file; everything else is treated as a folder.
std::vector<DataFile> stored_files(const SourceKind& kind,
                                   const std::string& uri) {
  const std::shared_ptr<const ObjectStore> store = connect_store(uri);
  std::string path = path_of_stored(uri);
  while (path.ends_with('/')) path.pop_back();
  std::vector<DataFile> found;
  if (is_pattern(path)) {
    const auto parts = split_pattern(path);
    found = stored_below(store, parts.first, [&](const std::string& name) {
      return matches_pattern(parts.second, name);
    });
    if (found.empty())
      refuse_path("files.missing", path, "no file matches this pattern",
                  "correct the pattern: * does not match '/', and **/ matches "
                  "any folders");
    return found;
  }
  const std::vector<StoredObject> objects = store->list(path);
  if (objects.size() == 1 && objects[0].path == path)
    return {stored(store, objects[0], path.substr(path.rfind('/') + 1))};
  if (objects.empty())
    refuse_path(
        "files.missing", path, "the store has no such file or folder",
        "check the bucket's name and the path; both are case-sensitive");
  found = stored_below(store, path, [&](const std::string& name) {
    return is_of_kind(kind, name);
  });
  if (found.empty())
    refuse_path(
        "files.none", path, "no file in this folder has this kind",
        "if the files have other names, write a pattern: \"" + path + "/*\"");
  return found;
}

/// All files below a folder that `wanted` takes.
template <class Wanted>
std::vector<DataFile> files_below(const std::string& folder, Wanted wanted) {
  std::vector<DataFile> found;
  each_file_below(folder, false,
                  [&](const std::string& path, std::string relative) {
                    if (wanted(relative))
                      found.push_back(file_at(path, std::move(relative)));
                  });
  std::ranges::sort(found, {}, &DataFile::relative);
  return found;
}

std::vector<DataFile> files_of(const SourceKind& kind,
                               const std::string& path) {
  std::error_code unknown;
  const bool there = fs::exists(path, unknown);
  if (!there && is_pattern(path)) {
    const auto parts = split_pattern(path);
    const std::string& folder = parts.first;
    const std::string& pattern = parts.second;
    if (!fs::is_directory(folder, unknown))
      refuse_path("files.missing", path, "there is no folder '" + folder + "'",
                  advice_for_missing(folder));
    std::vector<DataFile> found =
        files_below(folder, [&](const std::string& name) {
          return matches_pattern(pattern, name);
        });
    if (found.empty())
      refuse_path("files.missing", path, "no file matches this pattern",
                  "correct the pattern: * does not match '/', and **/ matches "
                  "any folders");
    return found;
  }
  if (!there || !fs::is_directory(path, unknown))
    return {file_at(path, fs::path(path).filename().string())};
  std::vector<DataFile> found = files_below(
      path, [&](const std::string& name) { return is_of_kind(kind, name); });
  if (!found.empty()) return found;
  std::string names;
  for (const std::string& extension : kind.extensions)
    names += (names.empty() ? "" : ", ") + extension;
  refuse_path(
      "files.none", path,
      "no file in this folder has a name that ends with " + names,
      "if the files have other names, write a pattern: \"" + path + "/*\"");
}

}  // namespace

void each_file_below(const std::string& folder, bool hidden,
                     const FileVisitor& visit) {
  std::error_code error;
  constexpr std::ptrdiff_t kDeepest = 64;  // a link may lead back
  each_below(folder, error, [&](const FolderEntry& entry) {
    if (!hidden && is_hidden(entry.path.filename().string())) return false;
    const std::string relative = entry.path.lexically_relative(folder).string();
    if (std::ranges::count(relative, '/') > kDeepest) return false;
    std::error_code unknown;
    if (entry.is_folder() || (entry.type == fs::file_type::symlink &&
                              fs::is_directory(entry.path, unknown)))
      return true;
    visit(entry.path.string(), relative);
    return false;
  });
  if (error)
    refuse_path("files.unreadable", folder, error.message(),
                "check the permissions of this folder");
}

bool is_pattern(const std::string& text) {
  return text.find_first_of("*?[") != text.npos;
}

std::pair<std::string, std::string> split_pattern(const std::string& text) {
  std::size_t first = text.find_first_of("*?[");
  std::size_t slash = text.rfind('/', first);
  if (slash == text.npos) return {".", text};
  return {slash == 0 ? "/" : text.substr(0, slash), text.substr(slash + 1)};
}

// Part by part, since fnmatch() knows no "**". Each "**" tries every split of
// what is left, which is exponential only in the number of "**" in a pattern.
bool matches_pattern(const std::string& pattern, const std::string& relative) {
  const std::size_t slash = pattern.find('/');
  const std::string front = pattern.substr(0, slash);
  if (slash == pattern.npos)
    return front == "**" ||
           fnmatch(front.c_str(), relative.c_str(), FNM_PATHNAME) == 0;
  const std::string rest = pattern.substr(slash + 1);
  const std::size_t end = relative.find('/');
  // "**/" stands for any folders, also none.
  if (front == "**" && matches_pattern(rest, relative)) return true;
  if (end == relative.npos) return false;
  const std::string below = relative.substr(end + 1);
  if (front == "**") return matches_pattern(pattern, below);
  return fnmatch(front.c_str(), relative.substr(0, end).c_str(), 0) == 0 &&
         matches_pattern(rest, below);
}

void refuse_path(const char* code, const std::string& path, std::string why,
                 std::string next) {
  throw Error(ErrorKind::source, {.code = code,
                                  .what = "cannot read '" + path + "'",
                                  .where = "source.path",
                                  .why = std::move(why),
                                  .next = std::move(next)});
}

std::string without_percent(const std::string& text) {
  auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size() && digit(text[at + 1]) >= 0 &&
        digit(text[at + 2]) >= 0) {
      plain +=
          static_cast<char>(16 * digit(text[at + 1]) + digit(text[at + 2]));
      at += 2;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

DataFile file_at(const std::string& path, std::string relative) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    const int reason = errno;
    refuse_path("files.missing", path, std::strerror(reason),
                reason == ENOENT ? advice_for_missing(path)
                                 : "check the permissions of the file");
  }
  if (!S_ISREG(found.st_mode))
    refuse_path("files.unreadable", path, "the path is not a file",
                "name a file, a folder or a pattern");
  return {.path = path,
          .relative = std::move(relative),
          .bytes = static_cast<std::int64_t>(found.st_size),
          .changed_ns = nanoseconds_of(found.st_mtim),
          .stamp = stamp_of(found)};
}

void check_unchanged(const DataFile& file) {
  if (file.store == nullptr) return check_same_file(file);
  const std::vector<StoredObject> found = file.store->list(file.path);
  if (found.size() != 1) refuse_changed(file.path, "the file is gone");
  const StoredObject& now = found[0];
  if (now.bytes != file.bytes || now.changed_ns != file.changed_ns)
    refuse_changed(file.path, size_difference(now.bytes, file.bytes));
}

// One stat() by name. It also notices a file that was replaced by rename: the
// descriptor that is open still reads the old one, and the name has a new
// inode. Programs cannot set the time of the last status change (st_ctim),
// which makes the stamp robust against tools that restore modification times.
void check_same_file(const DataFile& file) {
  if (!file.stamp) return;
  const FileStamp& then = *file.stamp;
  const std::optional<FileStamp> now = stamp_of(file.path);
  if (now == then) return;
  if (!now)
    refuse_changed(file.path,
                   errno == ENOENT ? "the file is gone" : std::strerror(errno));
  refuse_changed(file.path, now->inode != then.inode
                                ? "another file now has its name"
                                : size_difference(now->bytes, then.bytes));
}

std::vector<DataFile> find_files(const SourceSpec& spec,
                                 const SourceKind& kind) {
  for (const std::string& path : paths_of(spec))
    if (is_stored(path))
      refuse_path(
          "files.store", path_of_stored(path),
          "sources of kind \"" + kind.name +
              "\" read files on disks, but this file is in an object store",
          "copy the file to a disk first");
  return find_files_anywhere(spec, kind);
}

std::vector<DataFile> find_files_anywhere(const SourceSpec& spec,
                                          const SourceKind& kind) {
  std::vector<DataFile> all;
  for (const std::string& path : paths_of(spec)) {
    std::vector<DataFile> found =
        is_stored(path) ? stored_files(kind, path) : files_of(kind, path);
    for (DataFile& file : found) {
      add_partitions(file);
      if (is_stored(path))
        file.store_options = path.substr(path_of_stored(path).size());
      all.push_back(std::move(file));
    }
  }
  return all;
}

}  // namespace penstock::files
