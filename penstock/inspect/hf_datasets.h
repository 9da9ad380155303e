#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

// Data sets of Hugging Face on this machine, for people: each function gives a
// document. Nothing but removed data sets is changed, and no network is used.

/// Where they are. Empty: none.
struct HfFolders {
  std::filesystem::path hub;       ///< repositories as they were downloaded
  std::filesystem::path datasets;  ///< what load_dataset() made of them
};

/// As the libraries find them: $HF_HUB_CACHE and $HF_DATASETS_CACHE, else below
/// $HF_HOME, else in the user's cache folder.
HfFolders default_hf_folders();

/// What to look for beside these.
struct DatasetSearch {
  HfFolders folders = default_hf_folders();
  /// Folders in which save_to_disk() may have written, with all below them.
  std::vector<std::filesystem::path> more = {};
  std::vector<std::filesystem::path> jobs = {};  ///< job files
  bool measure = true;  ///< how fast their drives are read
};

/// "datasets", each with "name", "origin" ("hub", "cache", "folder"), "path",
/// "config", "splits", "rows" (null: nobody wrote them down), "bytes" on disk,
/// "formats", "complete", with "why" where it is not, "used" (UTC), "drive" (a
/// mount point) and "jobs" that read it; "drives"; "bytes" of all. A job file
/// that cannot be read is an Error(request).
Json find_datasets(const DatasetSearch& search);

/// Removes repositories of the hub's cache ("hub") or what load_dataset() made
/// ("datasets") that were not used for so long, and incomplete ones that are a
/// day old: "removed", as above, "bytes", "kept". With `dry` nothing is
/// removed.
Json prune_datasets(const HfFolders& folders, const std::string& origin,
                    std::chrono::system_clock::duration unused, bool dry);

}  // namespace penstock
