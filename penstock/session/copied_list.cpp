#include "penstock/session/copied_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "penstock/base/base.h"
#include "penstock/base/folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr const char* kList = "copied.jsonl";

/// The name of a file that is being copied, without what copy_file() adds.
std::string without_part(const std::string& name) {
  return name.substr(0, std::min(name.size(), name.rfind(".part-")));
}

std::string line_text(const Json& line, const char* key) {
  const Json* found = line.find(key);
  return found != nullptr && found->is_string() ? found->string() : "";
}

std::int64_t line_number(const Json& line, const char* key) {
  const Json* found = line.find(key);
  return found != nullptr && found->is_number() ? found->integer() : -1;
}

bool is_copy(const fs::path& folder) {
  const std::string name = folder.filename().string();
  std::error_code unknown;
  return name.size() == 32 &&
         name.find_first_not_of("0123456789abcdef") == name.npos &&
         fs::is_regular_file(folder / kList, unknown);
}

std::chrono::system_clock::time_point last_used(const fs::path& folder) {
  std::error_code unknown;
  const auto changed = fs::last_write_time(folder / kList, unknown);
  if (unknown) return std::chrono::system_clock::now();
  return std::chrono::time_point_cast<std::chrono::system_clock::duration>(
      std::chrono::file_clock::to_sys(changed));
}

std::int64_t bytes_below(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  each_below(folder, error, [&](const FolderEntry& entry) {
    std::error_code unknown;
    if (fs::is_regular_file(entry.path, unknown))
      bytes += static_cast<std::int64_t>(fs::file_size(entry.path, unknown));
    return entry.is_folder();
  });
  return bytes;
}

Json source_of(const fs::path& folder) {
  std::ifstream list(folder / kList);
  std::string first;
  std::getline(list, first);
  try {
    const Json about = Json::parse(first, (folder / kList).string());
    const Json* source = about.is_object() ? about.find("source") : nullptr;
    if (source != nullptr) return *source;
  } catch (const Error&) {
  }
  return {};  // cut off
}

}  // namespace

// One JSON object a line, appended: the last line of a name counts, and a line
// that a crash has cut off is skipped, so its file is copied once more. The
// first line describes the source, for people and for pruning.
CopiedList::CopiedList(const fs::path& folder) : folder_(folder) {
  std::ifstream file(folder / kList);
  for (std::string text; std::getline(file, text);) {
    Json line;
    try {
      line = Json::parse(text, (folder / kList).string());
    } catch (const Error&) {
      continue;  // cut off
    }
    if (!line.is_object() || line.find("to") == nullptr) continue;
    entries_[line_text(line, "to")] = {
        .version = line_text(line, "version"),
        .bytes = line_number(line, "bytes"),
        .changed_ns = line_number(line, "changed_ns")};
  }
}

void CopiedList::begin(const fs::path& folder, const SourceSpec& spec,
                       const std::vector<StagedFile>& files) {
  real_files().make_folders(folder, Readers::owner);
  std::set<std::string> wanted;
  for (const StagedFile& file : files) wanted.insert(file.to);
  std::error_code error;
  each_below(folder, error, [&](const FolderEntry& entry) {
    std::error_code unknown;
    if (fs::is_directory(entry.path, unknown)) return entry.is_folder();
    const std::string name = entry.path.lexically_relative(folder).string();
    if (name != kList && !wanted.contains(without_part(name)))
      fs::remove(entry.path, unknown);
    return false;
  });
  if (fs::exists(folder / kList)) {
    // A line that was cut off shall not take the next one with it.
    std::ifstream list(folder / kList, std::ios::binary | std::ios::ate);
    char last = '\n';
    if (list.tellg() > 0) list.seekg(-1, std::ios::end).get(last);
    if (last != '\n') real_files().append_line(folder / kList, "");
    return;
  }
  Json about;
  about["source"] = source_section(spec);
  real_files().append_line(folder / kList, about.dump(), Readers::owner);
}

void CopiedList::used_now(const fs::path& folder) {
  std::error_code unknown;
  fs::last_write_time(folder / kList, fs::file_time_type::clock::now(),
                      unknown);
}

// The version is that of the original; size and time are of the copy, whose
// time was set to that of the original. A copy that was touched since is not
// trusted.
bool CopiedList::holds(const StagedFile& file) const {
  const auto entry = entries_.find(file.to);
  if (entry == entries_.end() || entry->second.version != file.version)
    return false;
  struct stat found {};
  return ::stat((folder_ / file.to).c_str(), &found) == 0 &&
         found.st_size == entry->second.bytes &&
         found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec ==
             entry->second.changed_ns;
}

void CopiedList::add(const StagedFile& file, std::uint64_t hash) {
  entries_[file.to] = {.version = file.version,
                       .bytes = file.bytes,
                       .changed_ns = file.changed_ns};
  Json line;
  line["to"] = file.to;
  line["version"] = file.version;
  line["bytes"] = file.bytes;
  line["changed_ns"] = file.changed_ns;
  line["hash"] = std::to_string(hash);
  real_files().append_line(folder_ / kList, line.dump(), Readers::owner);
}

Json prune_copies(const fs::path& dir,
                  std::chrono::system_clock::duration unused, bool dry) {
  Json json;
  json["dir"] = dir.string();
  json["removed"] = Json(Json::Array{});
  std::int64_t bytes = 0, kept = 0;
  const auto oldest = std::chrono::system_clock::now() - unused;
  std::error_code error;
  std::vector<fs::path> folders;
  for (FolderEntry& entry : entries_of(dir, error))
    if (is_copy(entry.path)) folders.push_back(std::move(entry.path));
  std::ranges::sort(folders);
  for (const fs::path& folder : folders) {
    const auto used = last_used(folder);
    if (used > oldest) {
      ++kept;
      continue;
    }
    Json copy;
    copy["path"] = folder.string();
    const std::int64_t size = bytes_below(folder);
    copy["bytes"] = size;
    copy["used"] = utc_text(used);
    copy["source"] = source_of(folder);
    std::error_code failed;
    if (!dry) remove_tree(folder, failed);
    if (failed)
      copy["failed"] = failed.message();
    else
      bytes += size;
    json["removed"].push_back(std::move(copy));
  }
  json["bytes"] = bytes;
  json["kept"] = kept;
  return json;
}

}  // namespace penstock
