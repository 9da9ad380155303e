#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "penstock/base/clock.h"
#include "penstock/sources/images/find_pictures.h"
#include "penstock/sources/side_by_side.h"

// A folder of a million files takes seconds to look through, most of which the
// system works on names: so classes are looked through, and sorted, side by
// side, and no text is made but the name that is kept.

namespace penstock::images {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

[[noreturn]] void refuse_folder(const std::string& path) {
  refuse(errno == ENOENT || errno == ENOTDIR ? "files.missing"
                                             : "files.unreadable",
         path, std::strerror(errno),
         "name the folder that holds a folder for each class; a relative "
         "path starts where the program does");
}

Folder open_folder(const std::string& path) {
  Folder folder(::opendir(path.c_str()));
  if (folder == nullptr) refuse_folder(path);
  return folder;
}

/// Null at the end.
const dirent* next_in(const Folder& folder, const std::string& path) {
  errno = 0;
  const dirent* entry = ::readdir(folder.get());
  if (entry == nullptr && errno != 0) refuse_folder(path);
  return entry;
}

bool is_folder(int parent, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return false;
  struct stat found {};
  return ::fstatat(parent, entry.d_name, &found, 0) == 0 &&
         S_ISDIR(found.st_mode);
}

bool is_self_or_parent(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

void stat_picture(int parent, const char* name, PicturePlace& place) {
  struct stat found {};
  // What has gone since, or cannot be read, is a bad sample when it is read.
  if (::fstatat(parent, name, &found, 0) != 0) return;
  place.bytes = found.st_size;
  place.changed_ns = nanoseconds_of(found.st_mtim);
}

/// Below a class's folder.
struct Search {
  std::vector<FoundPicture> pictures;
  std::vector<FoundFolder> folders;
};

/// All pictures below a class's folder. A link to a folder above would never
/// end: `above` holds the folders on the way.
class ClassFolder {
 public:
  ClassFolder(const std::string& root, const std::string& name,
              std::int32_t number, const Media& media, StopFlag stop)
      : root_(root),
        class_(name),
        number_(number),
        media_(media),
        stop_(stop) {}

  Search search() {
    search(class_);
    std::ranges::sort(found_.pictures, {}, &FoundPicture::name);
    return std::move(found_);
  }

 private:
  using Number = std::pair<dev_t, ino_t>;

  void search(const std::string& relative) {
    end_if_stopped(stop_);
    const std::string path = root_ + "/" + relative;
    Folder folder = open_folder(path);
    const int number = ::dirfd(folder.get());
    struct stat self {};
    ::fstat(number, &self);
    const auto [entered, is_new] = above_.insert({self.st_dev, self.st_ino});
    if (!is_new) return;
    found_.folders.push_back({relative, nanoseconds_of(self.st_mtim)});
    while (const dirent* entry = next_in(folder, path)) {
      const std::string_view name = entry->d_name;
      if (is_self_or_parent(entry->d_name)) continue;
      if (is_folder(number, *entry)) {
        search((relative + "/").append(name));
      } else if (is_picture_name(name, media_)) {
        FoundPicture& picture = found_.pictures.emplace_back();
        picture.name.reserve(relative.size() + 1 + name.size());
        picture.name.append(relative).append("/").append(name);
        picture.place.of_class = number_;
        stat_picture(number, entry->d_name, picture.place);
      }
    }
    above_.erase(entered);
  }

  const std::string& root_;
  const std::string class_;
  const std::int32_t number_;
  const Media& media_;
  const StopFlag stop_;
  std::set<Number> above_;
  Search found_;
};

std::vector<std::string> classes_of(const std::string& root, const Media& media,
                                    std::size_t& loose,
                                    std::vector<FoundFolder>& folders) {
  Folder folder = open_folder(root);
  struct stat self {};
  ::fstat(::dirfd(folder.get()), &self);
  folders.push_back({"", nanoseconds_of(self.st_mtim)});
  std::vector<std::string> classes;
  while (const dirent* entry = next_in(folder, root)) {
    if (is_self_or_parent(entry->d_name)) continue;
    if (is_folder(::dirfd(folder.get()), *entry))
      classes.emplace_back(entry->d_name);
    else
      loose += is_picture_name(entry->d_name, media) ? 1 : 0;
  }
  std::ranges::sort(classes);
  return classes;
}

}  // namespace

std::vector<FoundPicture> pictures_in_folders(
    const std::string& root, const Media& media, StopFlag stop,
    std::vector<std::string>& classes, std::vector<FoundFolder>& folders) {
  const std::string one = media.one;
  std::size_t loose = 0;
  classes = classes_of(root, media, loose, folders);
  if (classes.empty())
    refuse("images.none", root,
           loose > 0 ? "it has " + std::to_string(loose) + " " + one +
                           "s, and no folder for each class"
                     : "it has no folder for each class",
           "put the " + one +
               "s of each class into a folder, or name a file as "
               "\"labels\" that says which class each has");
  std::vector<Search> found(classes.size());
  side_by_side(classes.size(), [&](std::size_t at) {
    found[at] = ClassFolder(root, classes[at], static_cast<std::int32_t>(at),
                            media, stop)
                    .search();
  });
  std::size_t count = 0;
  for (const Search& of_class : found) count += of_class.pictures.size();
  std::vector<FoundPicture> all;
  all.reserve(count);
  for (std::size_t at = 0; at < classes.size(); ++at) {
    if (found[at].pictures.empty())
      refuse("images.empty_class", root + "/" + classes[at],
             "this folder has no " + one + ", so its class has none",
             "remove the folder, or put " + one + "s into it");
    std::ranges::move(found[at].pictures, std::back_inserter(all));
    std::ranges::move(found[at].folders, std::back_inserter(folders));
    found[at] = {};
  }
  return all;
}

}  // namespace penstock::images
