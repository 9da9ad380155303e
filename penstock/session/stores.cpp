#include "penstock/session/stores.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/folder.h"
#include "penstock/base/shown.h"
#include "penstock/base/temporary.h"
#include "penstock/session/difference.h"

namespace penstock {
namespace {

using Path = std::filesystem::path;
using Time = std::chrono::system_clock::time_point;

constexpr const char* kNamed[] = {"fingerprint", "rows", "source"};

/// A store as it was found.
struct Found {
  Path path;
  std::uintmax_t bytes = 0;
  Time used;
  std::unique_ptr<const Store> store;  // null: it cannot be used
  std::string unusable;

  Json json() const {
    Json json;
    json["path"] = path.string();
    json["bytes"] = static_cast<std::int64_t>(bytes);
    json["used"] = utc_text(used);
    if (store == nullptr) {
      json["unusable"] = unusable;
      return json;
    }
    for (const char* name : kNamed) {
      const Json* value = store->about().find(name);
      json[name] = value == nullptr ? Json() : *value;
    }
    return json;
  }
};

Found open_store(const Path& file) {
  std::error_code gone;
  Found found{.path = file, .bytes = std::filesystem::file_size(file, gone)};
  if (gone) found.bytes = 0;
  auto changed = std::filesystem::last_write_time(file, gone);
  if (!gone)
    found.used = std::chrono::time_point_cast<Time::duration>(
        std::chrono::file_clock::to_sys(changed));
  try {
    found.store = std::make_unique<const Store>(real_files(), found.path);
  } catch (const Error& error) {
    found.unusable = error.parts().why;
  }
  return found;
}

bool is_store(const Path& file) {
  const std::string name = file.filename().string();
  std::error_code unknown;
  return name.size() == 38 && name.ends_with(".store") &&
         name.find_first_not_of("0123456789abcdef") == 32 &&
         std::filesystem::is_regular_file(file, unknown);
}

[[noreturn]] void refuse_folder(const Path& dir, std::string why) {
  throw Error(ErrorKind::request,
              {.code = "cache.no_folder",
               .what = "cannot look for stores",
               .where = dir.string(),
               .why = std::move(why),
               .next = "name the folder of 'loader.cache_dir'"});
}

/// The files of a folder; none where it is not there and need not be.
std::vector<FolderEntry> files_of(const Path& dir, bool needed = false) {
  std::error_code failed;
  std::vector<FolderEntry> files = entries_of(dir, failed);
  if (failed && (needed || failed != std::errc::no_such_file_or_directory))
    refuse_folder(dir, failed.message());
  return files;
}

void check_folder(const Path& dir) {
  files_of(dir, dir != default_store_dir());
}

// A store is recognised by its name (32 hex digits and ".store"), so that a
// folder that a user names by mistake is never pruned of other files. "Used" is
// the modification time, which each run that reads a store renews.
std::vector<Found> stores_of(const Path& dir) {
  std::vector<Found> all;
  for (const FolderEntry& file : files_of(dir))
    if (is_store(file.path)) all.push_back(open_store(file.path));
  std::ranges::sort(all, [](const Found& a, const Found& b) {
    return std::pair(b.used, a.path) < std::pair(a.used, b.path);
  });
  return all;
}

/// The temporary files of writers that were killed, and of preparations that
/// nobody has gone on with since `oldest` what they had parsed.
void remove_left_by_writers(const Path& dir, Time oldest) {
  constexpr std::string_view kMark = ".store.tmp.";
  for (const auto& [file, type] : files_of(dir)) {
    std::string name = file.filename().string();
    if (std::size_t at = name.find(kMark); at != name.npos)
      remove_leftovers(dir / name.substr(0, at + 6));
    if (name.ends_with(".store.lock"))
      FileLock().try_take(file);  // removed where nobody has it
    std::error_code gone;
    if (!name.ends_with(".store.parts") ||
        type != std::filesystem::file_type::directory)
      continue;
    const auto changed = std::filesystem::last_write_time(file, gone);
    // Somebody may be writing those of the last hour.
    const Time used = std::chrono::time_point_cast<Time::duration>(
        std::chrono::file_clock::to_sys(changed));
    if (gone || used > std::min(oldest, std::chrono::system_clock::now() -
                                            std::chrono::hours(1)))
      continue;
    remove_tree(file);
  }
}

/// A document of these, each as `json_of` shows it.
template <class JsonOf>
Json document(const Path& dir, const std::vector<Found>& all, JsonOf json_of) {
  Json json;
  json["dir"] = dir.string();
  json["stores"] = Json(Json::Array{});
  std::uintmax_t bytes = 0;
  for (const Found& found : all) {
    json["stores"].push_back(json_of(found));
    bytes += found.bytes;
  }
  json["bytes"] = static_cast<std::int64_t>(bytes);
  return json;
}

/// The parts of a recipe in which they differ, each by its first difference.
std::vector<Difference> differences(const Json& stored, const Json& now) {
  std::vector<Difference> all;
  for (const auto& [part, value] : now.object()) {
    const Json* other = stored.find(part);
    if (auto found =
            first_difference(other == nullptr ? Json() : *other, value, part))
      all.push_back(std::move(*found));
  }
  for (const auto& [part, value] : stored.object())
    if (now.find(part) == nullptr) all.push_back({part, value, Json()});
  return all;
}

/// What a run compares with its hashes before it begins.
void check_beginning(Found& found, std::size_t fields) {
  try {
    check_what_is_read_first(*found.store, fields);
    const std::string changed = changed_file_of(*found.store);
    if (changed.empty()) return;
    found.unusable = "'" + changed + "' has changed since";
    found.store.reset();
  } catch (const Error& error) {
    found.unusable = error.parts().where + ": " + error.parts().why;
    found.store.reset();
  }
}

/// The same place of the same kind, whatever its version.
bool same_source(const Json& stored, const Json& now) {
  const Json *a = stored.find("source"), *b = now.find("source");
  if (a == nullptr || b == nullptr) return false;
  auto same = [&](const char* name) {
    const Json *in_a = a->find(name), *in_b = b->find(name);
    return (in_a == nullptr) == (in_b == nullptr) &&
           (in_a == nullptr || *in_a == *in_b);
  };
  return same("kind") && same("path") && same("place") && same("table");
}

/// What a store of the same source is nearest to the recipe in.
void add_nearest(Json& json, const Path& dir, const Json& recipe) {
  std::vector<Difference> least;
  for (const Found& found : stores_of(dir)) {
    if (found.store == nullptr) continue;
    const Json* stored = found.store->about().find("recipe");
    if (stored == nullptr || !same_source(*stored, recipe)) continue;
    std::vector<Difference> differs = differences(*stored, recipe);
    if (differs.empty() || (!least.empty() && least.size() <= differs.size()))
      continue;
    least = std::move(differs);
    json["nearest"] = found.path.string();
  }
  if (least.empty()) {
    json["why"] = "this source has no store in " + dir.string();
    return;
  }
  json["differs"] = Json(Json::Array{});
  for (const Difference& difference : least) {
    Json entry;
    entry["part"] = difference.path;
    entry["stored"] = difference.found;
    entry["now"] = difference.made;
    json["differs"].push_back(std::move(entry));
  }
  json["why"] =
      "the nearest store differs in " + listed(least, &Difference::path);
}

}  // namespace

Json list_stores(const Path& dir) {
  check_folder(dir);
  return document(dir, stores_of(dir),
                  [](const Found& found) { return found.json(); });
}

Json why_store(const TableDatasetOptions& of, const BoundSource& rows) {
  TableDatasetOptions options = of;
  options.fingerprint = plan_preparation(options, rows, {}).fingerprint;
  const Source& source = *rows.source;
  const TableStore store = table_store(options, source, false);
  Json json;
  json["source"] = source.shown();
  json["store"] = store.path.string();
  json["hit"] = false;
  std::error_code unknown;
  if (!uses_stores(options)) {
    json["why"] = options.cache == "none" ? "'loader.cache' is \"none\""
                                          : "'loader.cache.disk_gib' is 0";
  } else if (!store.why_not.empty()) {
    json["why"] = store.why_not;
  } else if (std::filesystem::exists(store.path, unknown)) {
    Found found = open_store(store.path);
    if (found.store != nullptr) check_beginning(found, options.fields.size());
    json["hit"] = found.store != nullptr;
    json["why"] = found.store == nullptr
                      ? "the store cannot be used: " + found.unusable
                      : "the store has the same rows, fields and split";
  } else {
    add_nearest(json, store.path.parent_path(), store.recipe);
  }
  return json;
}

std::shared_ptr<const Store> store_of_source(
    const TableDatasetOptions& options) {
  const Json asked = asked_of_source(options);
  for (Found& found : stores_of(store_dir(options))) {
    if (found.store == nullptr) continue;
    const Json* opened = found.store->about().find("opened");
    if (opened == nullptr || !opened->is_object()) continue;
    const Json* its = opened->find("asked");
    if (its != nullptr && *its == asked) return std::move(found.store);
  }
  return nullptr;
}

namespace {

BoundSource bound_rows(const RowsRecipe& recipe) {
  return bound_source(recipe.fields,
                      open_source(recipe.source, requests_of(recipe), {}));
}

}  // namespace

Json why_store(const Job& job) {
  if (job.sources.empty()) {
    const TableDatasetOptions options = dataset_options(job, MemoryKind::cpu);
    return why_store(options, bound_rows(options));
  }
  std::vector<MixedSourceOptions> options = mixed_options(job);
  std::vector<BoundSource> sources;
  for (const MixedSourceOptions& one : options)
    sources.push_back(bound_rows(one.rows));
  note_what_fits(options, sources);
  Json json;
  for (std::size_t s = 0; s < sources.size(); ++s)
    json["sources"].push_back(why_store(options[s].rows, sources[s]));
  return json;
}

Path left_out_list(const Path& store) {
  return store.string() + ".left_out.jsonl";
}

Json prune_stores(const Path& dir, std::chrono::system_clock::duration unused,
                  bool dry) {
  check_folder(dir);
  const Time oldest = std::chrono::system_clock::now() - unused;
  std::vector<Found> all = stores_of(dir);
  const auto before = all.size();
  std::erase_if(all, [&](const Found& found) { return found.used > oldest; });
  if (!dry) remove_left_by_writers(dir, oldest);
  std::uintmax_t bytes = 0;
  Json json = document(dir, all, [&](const Found& found) {
    Json entry = found.json();
    std::error_code failed;
    if (!dry) std::filesystem::remove(found.path, failed);
    std::error_code none;
    if (!dry && !failed)
      std::filesystem::remove(left_out_list(found.path), none);
    if (failed)
      entry["failed"] = failed.message();
    else
      bytes += found.bytes;
    return entry;
  });
  Json result;
  result["dir"] = *json.find("dir");
  result["removed"] = *json.find("stores");
  result["bytes"] = static_cast<std::int64_t>(bytes);
  result["kept"] = static_cast<std::int64_t>(before - all.size());
  return result;
}

Json verify_stores(const Path& dir) {
  check_folder(dir);
  std::int64_t sound = 0;
  Json json = document(dir, stores_of(dir), [&](const Found& found) {
    Json entry = found.json();
    if (found.store == nullptr) return entry;
    try {
      found.store->check_all();
      ++sound;
    } catch (const Error& error) {
      entry["damaged"] = error.parts().where + ": " + error.parts().why;
    }
    return entry;
  });
  json["sound"] = sound;
  return json;
}

}  // namespace penstock
