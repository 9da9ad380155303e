#include "penstock/sources/staged.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/files/file_reader.h"
#include "penstock/sources/kinds.h"
#include "penstock/sources/this_copy.h"

// A copy holds, for entry N of `path`, the folder N: what is below the folder
// that the entry names, or below the one before its first pattern, or the file;
// and a file of rows beside these in the folder "labels".

namespace penstock {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, std::string why,
                         std::string next) {
  throw Error(ErrorKind::request, {.code = "source.stage",
                                   .what = "cannot copy '" + path + "'",
                                   .where = "source.stage",
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

std::vector<std::string> paths_in(const SourceSpec& spec) {
  if (std::any_cast<FileSettings>(&spec.own) != nullptr) return paths_of(spec);
  return {spec.path};
}

/// A file whose rows stand beside those of all files; empty: none.
std::string labels_in(const SourceSpec& spec) {
  const auto* files = std::any_cast<FileSettings>(&spec.own);
  return files == nullptr ? std::string() : files->row_labels;
}

bool is_folder(const std::string& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

/// A pattern, unless there is something of just that name.
bool names_several(const std::string& path) {
  std::error_code unknown;
  return files::is_pattern(path) && !fs::exists(path, unknown);
}

/// The folder whose files are below that of an entry of `path` in the copy.
std::string folder_of_entry(const std::string& path) {
  if (names_several(path)) return files::split_pattern(path).first;
  return is_folder(path) ? path : fs::path(path).parent_path().string();
}

/// All files below a folder of which `wanted` takes the path, or that of a
/// folder that they are in.
template <class Wanted>
void add_below(const std::string& folder, const std::string& to,
               const Wanted& wanted, std::vector<StagedFile>& found) {
  files::each_file_below(
      folder, true, [&](const std::string& path, const std::string& below) {
        if (wanted(below)) found.push_back(staged_file(path, to + "/" + below));
      });
}

bool matches_or_is_in_match(const std::string& pattern,
                            const std::string& below) {
  for (std::size_t end = 0; end != below.npos;) {
    end = below.find('/', end + 1);
    if (files::matches_pattern(pattern, below.substr(0, end))) return true;
  }
  return false;
}

/// A database's latest changes may be in another file, and a copy that is made
/// while it changes holds half of them. SQLite's write-ahead log ("-wal") holds
/// pages that are newer than those in the file; a rollback journal ("-journal")
/// holds pages that an unfinished transaction has overwritten. Without either,
/// the file alone is consistent.
void refuse_open_database(const std::string& path) {
  for (const char* end : {"-wal", "-journal"}) {
    struct stat found {};
    if (::stat((path + end).c_str(), &found) != 0 || found.st_size == 0)
      continue;
    refuse(path,
           "the database is being written: " + path + end + " holds " +
               std::to_string(found.st_size) + " bytes",
           "close the database in the program that writes it, or leave 'stage' "
           "out");
  }
}

void add_file(const SourceSpec& spec, const fs::path& path,
              const std::string& to, std::vector<StagedFile>& found) {
  const SourceKind* kind = source_kind(spec.kind);
  if (kind != nullptr && !kind->files) refuse_open_database(path.string());
  found.push_back(
      staged_file(path.string(), to + "/" + path.filename().string()));
  if (kind == nullptr) return;
  for (const std::string& end : kind->beside) {
    fs::path other = path;
    if (end.starts_with('+'))
      other += end.substr(1);
    else
      other.replace_extension(end);
    std::error_code unknown;
    if (fs::is_regular_file(other, unknown))
      found.push_back(
          staged_file(other.string(), to + "/" + other.filename().string()));
  }
}

std::string place_of(const SourceSpec& spec) {
  return std::any_cast<FileSettings>(&spec.own) != nullptr
             ? files::place_of(spec)
             : spec.path;
}

SourceFacts facts_of_original(const Source& copy, const SourceSpec& spec) {
  SourceFacts facts = copy.facts();
  const SourceSpec opened = spec_of_copy(spec);
  const std::string from = place_of(opened), to = place_of(spec);
  for (std::size_t at = 0;
       (at = facts.shown.find(from, at)) != facts.shown.npos; at += to.size())
    facts.shown.replace(at, from.size(), to);
  for (const char* key : {"place", "path"})
    if (const Json* found = facts.identity.find(key);
        found != nullptr && *found == Json(from))
      facts.identity[key] = to;
  const std::string version = spec.staged_version.empty()
                                  ? version_of(staged_files(spec))
                                  : spec.staged_version;
  facts.identity[kThisCopy] = version;
  // Of a database it is that of the copy's file.
  if (!source_kind(spec.kind)->files) {
    facts.identity["version"] = version;
    facts.identity["wal"] = Json();
  }
  return facts;
}

// A source that reads a copy and is known by its original: stores, saved
// positions and messages then do not depend on where the copy lies. So its
// identity is that of the original's files, not of the copy's inodes.
class OriginalOf final : public Source {
 public:
  OriginalOf(std::unique_ptr<Source> copy, const SourceSpec& spec)
      : Source(facts_of_original(*copy, spec)), copy_(std::move(copy)) {}

  RowCount count() const override { return copy_->count(); }
  std::vector<Partition> partitions(int readers) override {
    return copy_->partitions(readers);
  }
  std::string place_of(std::int64_t position) const override {
    return copy_->place_of(position);
  }
  bool lengths(std::size_t request, std::int64_t first,
               std::span<std::int32_t> out) const override {
    return copy_->lengths(request, first, out);
  }
  std::unique_ptr<Reader> open_reader() override {
    return copy_->open_reader();
  }

 private:
  const std::unique_ptr<Source> copy_;
};

}  // namespace

StagedFile staged_file(const std::string& from, std::string to) {
  const files::DataFile file = files::file_at(from, to);
  FileStamps stamp;
  stamp.add(file.stamp);
  return {.from = from,
          .to = std::move(to),
          .bytes = file.bytes,
          .changed_ns = file.changed_ns,
          .version = stamp.hex()};
}

std::vector<StagedFile> staged_files(const SourceSpec& spec) {
  std::vector<StagedFile> found;
  std::size_t number = 0;
  for (const std::string& path : paths_in(spec)) {
    if (files::is_stored(path))
      refuse(path, "the path is in an object store",
             "copy it to this machine with the tools of the store, or leave "
             "'stage' out, which reads it from the store");
    const std::string to = std::to_string(number++);
    const std::size_t before = found.size();
    if (names_several(path)) {
      const auto parts = files::split_pattern(path);
      add_below(
          parts.first, to,
          [&](const std::string& below) {
            return matches_or_is_in_match(parts.second, below);
          },
          found);
    } else if (is_folder(path)) {
      add_below(
          path, to, [](const std::string&) { return true; }, found);
    } else {
      add_file(spec, path, to, found);
    }
    if (found.size() == before)
      throw Error(ErrorKind::source,
                  {.code = "files.missing",
                   .what = "cannot read '" + path + "'",
                   .where = "source.path",
                   .why = "the path matches no file",
                   .next = "check the path; * does not match '/'"});
  }
  if (const std::string labels = labels_in(spec); !labels.empty())
    add_file(spec, labels, "labels", found);
  std::ranges::sort(found, {}, &StagedFile::to);
  // A pattern may find the index of a store by itself.
  found.erase(std::unique(found.begin(), found.end(),
                          [](const StagedFile& a, const StagedFile& b) {
                            return a.to == b.to;
                          }),
              found.end());
  return found;
}

std::string version_of(const std::vector<StagedFile>& files) {
  Sha256 hash;
  for (const StagedFile& file : files)
    hash.add(file.to + "\n" + file.version + "\n");
  return hash.hex();
}

// The name of a copy comes from absolute paths alone: a changed original gets
// the same folder, whose list of copies decides which files are copied again.
std::string staged_name(const SourceSpec& spec) {
  Sha256 hash;
  hash.add(spec.kind + "\n");
  for (const std::string& path : paths_in(spec))
    hash.add(fs::absolute(path).lexically_normal().string() + "\n");
  if (const std::string labels = labels_in(spec); !labels.empty())
    hash.add("labels " + fs::absolute(labels).lexically_normal().string());
  return hash.hex().substr(0, 32);
}

SourceSpec spec_of_copy(const SourceSpec& spec) {
  if (spec.staged_in.empty()) return spec;
  SourceSpec copy = spec;
  auto* files = std::any_cast<FileSettings>(&copy.own);
  std::vector<std::string> paths;
  for (const std::string& path : paths_in(spec)) {
    fs::path place = fs::path(spec.staged_in) / std::to_string(paths.size());
    if (files != nullptr)
      files->copied_from.emplace_back(place.string(), folder_of_entry(path));
    if (names_several(path))
      place /= files::split_pattern(path).second;
    else if (!is_folder(path))
      place /= fs::path(path).filename();
    paths.push_back(place.string());
  }
  if (files != nullptr && !files->row_labels.empty()) {
    const fs::path labels = files->row_labels;
    const fs::path place = fs::path(spec.staged_in) / "labels";
    files->copied_from.emplace_back(place.string(),
                                    labels.parent_path().string());
    files->row_labels = (place / labels.filename()).string();
  }
  if (files != nullptr && !files->paths.empty())
    files->paths = std::move(paths);
  else
    copy.path = paths.at(0);
  return copy;
}

std::unique_ptr<Source> as_original(std::unique_ptr<Source> copy,
                                    const SourceSpec& spec) {
  return std::make_unique<OriginalOf>(std::move(copy), spec);
}

}  // namespace penstock
