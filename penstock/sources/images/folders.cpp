#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/sources/images/find_pictures.h"
#include "penstock/sources/side_by_side.h"

// A folder of a million files should be there at once: so classes are looked
// through, and sorted, side by side; a name is a few bytes in a row of others;
// and no file is asked for its size, which costs five times as much as its
// name.

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
         "name the folder that holds the files, or one folder per class; "
         "relative paths start in the current folder");
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

/// The names of files, which may be very many, in one piece of memory.
class Names {
 public:
  void add(std::string_view folder, std::string_view name) {
    const std::size_t begin = bytes_.size();
    bytes_.append(folder).append(name);
    PENSTOCK_ASSERT(bytes_.size() <= UINT32_MAX, "a class has 4 GiB of names");
    names_.push_back(
        {.begin = static_cast<std::uint32_t>(begin),
         .size = static_cast<std::uint32_t>(bytes_.size() - begin)});
  }

  std::size_t size() const { return names_.size(); }
  /// Puts them behind `prefix` in the order of their bytes, each before a '\0'.
  void write_sorted(std::string_view prefix, std::string& to,
                    std::vector<std::uint32_t>& sizes) {
    sort();
    to.reserve(bytes_.size() + names_.size() * (prefix.size() + 1));
    sizes.reserve(names_.size());
    for (const Name& name : names_) {
      to.append(prefix).append(text(name)).push_back('\0');
      sizes.push_back(static_cast<std::uint32_t>(prefix.size()) + name.size);
    }
  }

 private:
  struct Name {
    std::uint64_t first = 0;  ///< of its bytes that are not common to all
    std::uint32_t begin, size;
  };

  std::string_view text(const Name& name) const {
    return std::string_view(bytes_).substr(name.begin, name.size);
  }

  /// Names of a folder begin alike and soon differ: eight bytes are compared at
  /// once, the rest where these are the same.
  void sort() {
    if (names_.empty()) return;
    const std::string_view model = text(names_.front());
    std::size_t common = model.size();
    for (const Name& name : names_) {
      const std::string_view other = text(name).substr(0, common);
      common = static_cast<std::size_t>(
          std::ranges::mismatch(other, model).in1 - other.begin());
    }
    for (Name& name : names_) {
      const std::string_view rest =
          text(name).substr(common, sizeof(name.first));
      std::memcpy(&name.first, rest.data(), rest.size());
      if constexpr (std::endian::native == std::endian::little)
        name.first = __builtin_bswap64(name.first);
    }
    std::ranges::sort(names_, [this](const Name& a, const Name& b) {
      return a.first != b.first ? a.first < b.first : text(a) < text(b);
    });
  }

  std::string bytes_;
  std::vector<Name> names_;
};

/// What is below a class's folder.
struct Search {
  std::string names;  ///< in order, each before a '\0'
  std::vector<std::uint32_t> sizes;
  std::vector<FoundFolder> folders;
};

/// All pictures below a class's folder. A link to a folder above would never
/// end: `above` holds the folders on the way.
class ClassFolder {
 public:
  ClassFolder(const std::string& root, const std::string& name,
              const Media& media, StopFlag stop)
      : root_(root), class_(name), media_(media), stop_(stop) {}

  Search search() {
    search("");
    names_.write_sorted(class_ + "/", found_.names, found_.sizes);
    return std::move(found_);
  }

 private:
  using Number = std::pair<dev_t, ino_t>;

  /// `below`: below the class's folder, with a '/' at its end.
  void search(const std::string& below) {
    end_if_stopped(stop_);
    std::string relative = class_ + "/" + below;
    relative.pop_back();
    const std::string path = root_ + "/" + relative;
    Folder folder = open_folder(path);
    const int number = ::dirfd(folder.get());
    struct stat self {};
    ::fstat(number, &self);
    const auto [entered, is_new] = above_.insert({self.st_dev, self.st_ino});
    if (!is_new) return;
    found_.folders.push_back({relative, stamp_of(self)});
    while (const dirent* entry = next_in(folder, path)) {
      if (is_self_or_parent(entry->d_name)) continue;
      const std::string_view name = entry->d_name;
      if (is_folder(number, *entry))
        search((below + entry->d_name).append("/"));
      else if (is_picture_name(name, media_))
        names_.add(below, name);
    }
    above_.erase(entered);
  }

  const std::string& root_;
  const std::string class_;
  const Media& media_;
  const StopFlag stop_;
  std::set<Number> above_;
  Names names_;
  Search found_;
};

/// The folders that are in the root, sorted; `loose`: pictures beside them.
std::vector<std::string> classes_of(const std::string& root, const Media& media,
                                    Names& loose,
                                    std::vector<FoundFolder>& folders) {
  Folder folder = open_folder(root);
  struct stat self {};
  ::fstat(::dirfd(folder.get()), &self);
  folders.push_back({"", stamp_of(self)});
  std::vector<std::string> classes;
  while (const dirent* entry = next_in(folder, root)) {
    if (is_self_or_parent(entry->d_name)) continue;
    if (is_folder(::dirfd(folder.get()), *entry))
      classes.emplace_back(entry->d_name);
    else if (is_picture_name(entry->d_name, media))
      loose.add("", entry->d_name);
  }
  std::ranges::sort(classes);
  return classes;
}

/// Pictures that are in no folder, where no folder has one.
void take_loose(Names& loose, PictureFiles& files) {
  std::string names;
  std::vector<std::uint32_t> sizes;
  loose.write_sorted("", names, sizes);
  auto parts = std::make_shared<RowParts>();
  parts->add_single(names, sizes);
  files.of_class.assign(sizes.size(), -1);
  files.names = std::move(parts);
}

/// Those of all class folders, in the order of their paths.
void take_classes(std::vector<Search>& found, PictureFiles& files) {
  const std::vector<std::string>& classes = files.classes;
  // By their paths "a-b/x" stands before "a/x", though "a" is before "a-b".
  std::vector<std::size_t> order(classes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&](std::size_t at) { return classes[at] + "/"; });
  auto names = std::make_shared<RowParts>();
  std::size_t pictures = 0, bytes = 0;
  for (const Search& of_class : found) {
    pictures += of_class.sizes.size();
    bytes += of_class.names.size() - of_class.sizes.size();
  }
  names->reserve(pictures, bytes);
  files.of_class.reserve(pictures);
  for (std::size_t at : order) {
    names->add_single(found[at].names, found[at].sizes);
    files.of_class.resize(names->size(), static_cast<std::int32_t>(at));
    found[at] = {};
  }
  files.names = std::move(names);
}

}  // namespace

void find_in_folders(PictureFiles& files, StopFlag stop,
                     std::vector<FoundFolder>& folders) {
  const std::string& root = files.root;
  Names loose;
  files.classes = classes_of(root, *files.media, loose, folders);
  const std::vector<std::string>& classes = files.classes;
  std::vector<Search> found(classes.size());
  side_by_side(classes.size(), [&](std::size_t at) {
    found[at] = ClassFolder(root, classes[at], *files.media, stop).search();
  });
  bool in_classes = false;
  for (Search& of_class : found) {
    in_classes |= !of_class.sizes.empty();
    std::ranges::move(of_class.folders, std::back_inserter(folders));
  }
  if (!in_classes && loose.size() > 0) {
    take_loose(loose, files);
    return;
  }
  take_classes(found, files);
  if (loose.size() == 0) return;
  const std::string one = files.media->one;
  files.unread = root + ": " + std::to_string(loose.size()) + " " + one +
                 (loose.size() == 1 ? " is" : "s are") +
                 " not read: only those in a class folder are, where there is "
                 "one";
}

}  // namespace penstock::images
