#include <algorithm>
#include <filesystem>
#include <map>

#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/folder.h"
#include "penstock/sources/arrow/arrow_file.h"

// A Hugging Face data set on disk is a folder of Arrow streams. save_to_disk()
// names them in state.json, in their order; a dict of data sets has a folder
// for each, named in dataset_dict.json. The cache has files NAME-PART.arrow, or
// NAME-PART-00000-of-00002.arrow, beside dataset_info.json.

namespace penstock::arrow_files {
namespace {

namespace fs = std::filesystem;
using files::DataFile;

[[noreturn]] void refuse(const char* code, ErrorKind kind,
                         const std::string& folder, std::string why,
                         std::string next) {
  throw Error(kind, {.code = code,
                     .what = "cannot read the data set in '" + folder + "'",
                     .where = "source.path",
                     .why = std::move(why),
                     .next = std::move(next)});
}

Json read_json(const fs::path& path) {
  try {
    return Json::parse(real_files().read(path), path.string());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::request) throw;
    refuse("files.damaged", ErrorKind::source, path.string(), error.what(),
           "save the data set again");
  }
}

std::string chosen_part(const std::string& folder,
                        const std::vector<std::string>& parts,
                        const std::string& wanted) {
  if (wanted.empty() && parts.size() == 1) return parts[0];
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  if (wanted.empty())
    refuse("source.part", ErrorKind::request, folder,
           "the data set has several splits: " + all,
           "name one split as source.part");
  if (std::ranges::find(parts, wanted) == parts.end())
    refuse("source.part", ErrorKind::request, folder,
           "the data set has no split '" + wanted + "', but " + all,
           did_you_mean(wanted, parts));
  return wanted;
}

std::vector<DataFile> saved_files(const std::string& folder) {
  const fs::path path = fs::path(folder) / "state.json";
  const Json state = read_json(path);
  const Json* listed = state.is_object() ? state.find("_data_files") : nullptr;
  const Json* indices =
      state.is_object() ? state.find("_indices_data_files") : nullptr;
  if (indices != nullptr && !indices->is_null())
    refuse("source.part", ErrorKind::request, folder,
           "the rows are selected by a list of indices (select, shuffle)",
           "call flatten_indices() before save_to_disk()");
  std::vector<DataFile> found;
  if (listed != nullptr && listed->is_array())
    for (const Json& entry : listed->array()) {
      const Json* name = entry.is_object() ? entry.find("filename") : nullptr;
      if (name == nullptr || !name->is_string() ||
          name->string().find('/') != std::string::npos)
        continue;
      found.push_back(files::file_at(
          (fs::path(folder) / name->string()).string(), name->string()));
    }
  if (found.empty())
    refuse("files.none", ErrorKind::source, folder,
           path.string() + " names no files", "save the data set again");
  return found;
}

/// The part of a file of the cache: "imdb-train-00000-of-00002.arrow" is of
/// "train". Empty: none.
std::string part_of(std::string name) {
  constexpr std::string_view kEnd = ".arrow";
  if (!name.ends_with(kEnd) || name.starts_with("cache-")) return "";
  name.resize(name.size() - kEnd.size());
  std::size_t of = name.rfind("-of-");
  if (of != name.npos && of >= 6) name.resize(of - 6);
  std::size_t dash = name.rfind('-');
  return dash == name.npos ? name : name.substr(dash + 1);
}

std::vector<DataFile> cached_files(const std::string& folder,
                                   const std::string& wanted) {
  std::map<std::string, std::vector<DataFile>> by_part;
  std::error_code error;
  for (const FolderEntry& entry : entries_of(folder, error)) {
    std::string name = entry.path.filename().string();
    if (std::string part = part_of(name); !part.empty())
      by_part[part].push_back(files::file_at(entry.path.string(), name));
  }
  if (error)
    refuse("files.unreadable", ErrorKind::source, folder, error.message(),
           "check the permissions of this folder");
  std::vector<std::string> parts;
  for (const auto& [part, found] : by_part) parts.push_back(part);
  if (parts.empty())
    refuse("files.none", ErrorKind::source, folder,
           "the folder holds neither state.json nor .arrow files",
           "name the folder that save_to_disk() wrote, or the folder in the "
           "cache that holds dataset_info.json");
  std::vector<DataFile> found = by_part[chosen_part(folder, parts, wanted)];
  std::ranges::sort(found, {}, &DataFile::relative);
  return found;
}

std::vector<DataFile> files_in(const std::string& folder,
                               const std::string& part) {
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown))
    refuse("files.missing", ErrorKind::source, folder,
           "the path is not a folder",
           "name the folder of the data set; single files are of kind "
           "\"arrow\"");
  if (fs::exists(fs::path(folder) / "state.json", unknown)) {
    if (!part.empty())
      refuse("source.part", ErrorKind::request, folder,
             "the data set has no splits", "leave source.part out");
    return saved_files(folder);
  }
  const fs::path dict = fs::path(folder) / "dataset_dict.json";
  if (!fs::exists(dict, unknown)) return cached_files(folder, part);
  const Json listed = read_json(dict);
  std::vector<std::string> parts;
  if (const Json* splits = listed.is_object() ? listed.find("splits") : nullptr;
      splits != nullptr && splits->is_array())
    for (const Json& split : splits->array())
      if (split.is_string()) parts.push_back(split.string());
  if (parts.empty())
    refuse("files.none", ErrorKind::source, folder,
           dict.string() + " names no splits", "save the data set again");
  return saved_files(
      (fs::path(folder) / chosen_part(folder, parts, part)).string());
}

}  // namespace

std::vector<DataFile> find_hf_files(const SourceSpec& spec, const SourceKind&) {
  std::vector<DataFile> all;
  for (const std::string& folder : paths_of(spec))
    for (DataFile& file : files_in(folder, file_settings_of(spec).part))
      all.push_back(std::move(file));
  return all;
}

}  // namespace penstock::arrow_files
