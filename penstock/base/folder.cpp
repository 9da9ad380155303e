#include "penstock/base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <new>
#include <string_view>

#include "penstock/base/error.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

/// Null: errno says why.
OpenFolder open_folder(int parent, const char* name, int more_flags) {
  const int file =
      ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | more_flags);
  if (file < 0) return nullptr;
  OpenFolder folder(::fdopendir(file));
  if (folder == nullptr) {
    const int reason = errno;
    ::close(file);
    errno = reason;
  }
  return folder;
}

/// Null at the end, and where errno is not 0.
const dirent* next_in(DIR* folder) {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder);
    if (entry == nullptr) return nullptr;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry;
  }
}

fs::file_type type_of(const dirent& entry, const fs::path& path) {
  switch (entry.d_type) {
    case DT_REG:
      return fs::file_type::regular;
    case DT_DIR:
      return fs::file_type::directory;
    case DT_LNK:
      return fs::file_type::symlink;
    default:
      break;
  }
  std::error_code gone;  // some file systems do not say it with the name
  return fs::symlink_status(path, gone).type();
}

FolderEntry entry_of(const fs::path& folder, const dirent& entry) {
  FolderEntry made{folder / entry.d_name, {}};
  made.type = type_of(entry, made.path);
  return made;
}

std::error_code error_of(int reason) {
  if (reason == ENOMEM) throw std::bad_alloc();
  return {reason, std::generic_category()};
}

bool remove_in(int parent, const char* name);

/// False: errno says why.
bool empty(int parent, const char* name) {
  const OpenFolder folder = open_folder(parent, name, O_NOFOLLOW);
  if (folder == nullptr) return false;
  while (const dirent* entry = next_in(folder.get()))
    if (!remove_in(::dirfd(folder.get()), entry->d_name)) return false;
  return errno == 0;
}

/// The same of the folder itself, or of what else has that name.
/// Everything is opened relative to its open folder and without following
/// links, so a link that is put there meanwhile cannot lead the removal
/// elsewhere.
bool remove_in(int parent, const char* name) {
  if (::unlinkat(parent, name, 0) == 0) return true;
  const bool is_folder = errno == EISDIR;
  if (is_folder && empty(parent, name) &&
      ::unlinkat(parent, name, AT_REMOVEDIR) == 0)
    return true;
  return errno == ENOENT;
}

}  // namespace

std::vector<FolderEntry> entries_of(const fs::path& folder,
                                    std::error_code& failed) {
  std::vector<FolderEntry> entries;
  failed.clear();
  const OpenFolder open = open_folder(AT_FDCWD, folder.c_str(), 0);
  while (open != nullptr) {
    const dirent* entry = next_in(open.get());
    if (entry == nullptr) break;
    entries.push_back(entry_of(folder, *entry));
  }
  if (errno != 0) failed = error_of(errno);
  return entries;
}

void each_below(const fs::path& folder, std::error_code& failed,
                const std::function<bool(const FolderEntry&)>& visit) {
  failed.clear();
  const OpenFolder open = open_folder(AT_FDCWD, folder.c_str(), 0);
  while (open != nullptr) {
    const dirent* next = next_in(open.get());
    if (next == nullptr) break;
    const FolderEntry entry = entry_of(folder, *next);
    if (!visit(entry)) continue;
    each_below(entry.path, failed, visit);
    if (failed) return;
  }
  if (errno != 0) failed = error_of(errno);
}

void remove_tree(const fs::path& path, std::error_code& failed) noexcept {
  failed.clear();
  if (!remove_in(AT_FDCWD, path.c_str()))
    failed = {errno, std::generic_category()};
}

void remove_tree(const fs::path& path) noexcept {
  std::error_code stays;
  remove_tree(path, stays);
}

std::string advice_for_missing(const std::string& path) {
  const fs::path wanted(path);
  const bool elsewhere = wanted.has_parent_path();
  std::error_code unknown;
  std::vector<std::string> names;
  for (const FolderEntry& entry :
       entries_of(elsewhere ? wanted.parent_path() : fs::path("."), unknown))
    names.push_back(entry.path.filename().string());
  const std::string found = nearest(wanted.filename().string(), names);
  if (found.empty())
    return "check the path; a relative path starts at " +
           fs::current_path(unknown).string();
  return "did you mean '" +
         (elsewhere ? (wanted.parent_path() / found).string() : found) + "'?";
}

}  // namespace penstock
