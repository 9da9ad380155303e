#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace penstock {

// In place of the iterators and remove_all() of std::filesystem: where there is
// no memory for a name in them, libstdc++ ends the program.

/// One of the things that lie in a folder.
struct FolderEntry {
  std::filesystem::path path;       ///< the folder's, and its name
  std::filesystem::file_type type;  ///< its own, not that of a link's target

  bool is_folder() const {
    return type == std::filesystem::file_type::directory;
  }
};

/// What lies in a folder, in the order of the system. Where that cannot be read
/// to its end, `failed` says why. Throws std::bad_alloc.
std::vector<FolderEntry> entries_of(const std::filesystem::path& folder,
                                    std::error_code& failed);

/// What to say of a path at which there is nothing: "did you mean 't.csv'?"
/// where its folder holds a name that is near, else where relative paths begin.
std::string advice_for_missing(const std::string& path);

/// Calls `visit` with what lies in a folder and then, where it gives true, with
/// what lies in there. Ends at a folder that cannot be read: `failed` says why.
/// Throws std::bad_alloc.
void each_below(const std::filesystem::path& folder, std::error_code& failed,
                const std::function<bool(const FolderEntry&)>& visit);

/// Removes a file, or a folder with all that is in it, if it is there. Of a
/// link only the link. Ends where something cannot be removed.
void remove_tree(const std::filesystem::path& path,
                 std::error_code& failed) noexcept;
/// The same for what need not be removed.
void remove_tree(const std::filesystem::path& path) noexcept;

}  // namespace penstock
