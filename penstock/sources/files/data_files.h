#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/file_stamp.h"
#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/files/object_store.h"

namespace penstock::files {

/// A file that holds rows.
struct DataFile {
  std::string path;      ///< to open it
  std::string relative;  ///< to what `path` of the job named, with '/'
  std::int64_t bytes = 0;
  std::int64_t changed_ns = 0;
  /// Of a file on a disk. A folder that is read as one file (Zarr) has none.
  std::optional<FileStamp> stamp = std::nullopt;
  /// Of a folder that is read as one file: the digest of the stamps in it.
  std::string stamps = {};
  /// What folders named "column=value" say of all its rows, outermost first.
  std::vector<std::pair<std::string, std::string>> partitions = {};
  /// Where it is in an object store, in which `path` is then a URI.
  std::shared_ptr<const ObjectStore> store = nullptr;
  /// What stood behind the path that named it: "?region=eu-west-1".
  std::string store_options = {};
};

/// The files that the job's `path` names, in the order of their `relative`
/// paths by UTF-8 bytes: those of each entry of a list after those of the
/// entry before it. A folder is searched with all its folders for names that
/// end as the kind's do (without regard to case); names that begin with '.' or
/// '_' are left out, as writers of such folders have it. A pattern may have *,
/// ? and [...], which do not match '/', and ** for any folders.
///
/// Throws Error(source): files.missing, files.none, and files.store for what is
/// in an object store.
std::vector<DataFile> find_files(const SourceSpec& spec,
                                 const SourceKind& kind);

/// The same, of kinds whose files may be in an object store, too.
std::vector<DataFile> find_files_anywhere(const SourceSpec& spec,
                                          const SourceKind& kind);

/// The same file in its present state. Throws Error(source), files.missing.
DataFile file_at(const std::string& path, std::string relative);

/// Throws Error(source), files.changed, unless the file is as it was. May send
/// a request to an object store: for when something else is wrong already.
void check_unchanged(const DataFile& file);

/// The same of files on disks alone, in about a microsecond: called after every
/// chunk that is read, so that no batch mixes two versions of a file.
void check_same_file(const DataFile& file);

/// Takes a file, and its path below a folder.
using FileVisitor =
    std::function<void(const std::string& path, std::string below)>;

/// Visits all files below a folder, also through links; with `hidden` those too
/// whose names, or those of their folders, begin with '.' or '_'.
/// Throws Error(source), files.unreadable.
void each_file_below(const std::string& folder, bool hidden,
                     const FileVisitor& visit);

/// Whether a path is a pattern of several.
bool is_pattern(const std::string& path);

/// "a/*/b.csv" into "a" and "*/b.csv": the folder before the first pattern.
std::pair<std::string, std::string> split_pattern(const std::string& path);

/// As find_files() compares a pattern with a path below its folder.
bool matches_pattern(const std::string& pattern, const std::string& relative);

/// Throws Error(source) of a path that the job names.
[[noreturn]] void refuse_path(const char* code, const std::string& path,
                              std::string why, std::string next);

/// A folder's name as it was before it was written as part of a path: "%20" is
/// a space.
std::string without_percent(const std::string& text);

}  // namespace penstock::files
