#include "penstock/base/kernel_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <memory>
#include <sstream>
#include <utility>

#include "penstock/base/recent.h"

namespace penstock {
namespace {

using std::filesystem::path;

std::optional<std::int64_t> number_at(std::string_view text) {
  std::size_t start = text.find_first_not_of(" \t");
  if (start == text.npos) return std::nullopt;
  std::int64_t value = 0;
  auto read =
      std::from_chars(text.data() + start, text.data() + text.size(), value);
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

/// True when `word` is one of the words between commas.
bool among(std::string_view word, const std::string& list) {
  return ("," + list + ",").find("," + std::string(word) + ",") !=
         std::string::npos;
}

/// The process's own group, as the kernel names it.
struct Group {
  std::string name;
  bool version_2 = false;
};

std::optional<Group> group_of(std::string_view controller,
                              const std::string& text) {
  std::optional<Group> found;
  // Lines "number:controllers:/group"; version 2 names no controllers.
  std::istringstream groups(text);
  for (std::string line; std::getline(groups, line);) {
    std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::string names = line.substr(first + 1, second - first - 1);
    std::string name = line.substr(second + 1);
    if (among(controller, names)) return Group{name, false};
    if (names.empty()) found = Group{name, true};
  }
  return found;
}

/// Where the group's tree is mounted, and which of its folders is there.
struct Mount {
  path at;
  std::string shows = "/";
};

Mount mount_of(std::string_view controller, bool version_2, const path& root,
               const std::string& text) {
  std::istringstream mounts(text);
  for (std::string line; std::getline(mounts, line);) {
    const std::size_t dash = line.find(" - cgroup");
    if (dash == line.npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string id, parent, device, shows, at, type, source, options;
    head >> id >> parent >> device >> shows >> at;
    tail >> type >> source >> options;
    if (version_2 ? type == "cgroup2"
                  : type == "cgroup" && among(controller, options))
      return {root / path(at).relative_path(), shows};
  }
  path usual = root / "sys/fs/cgroup";
  return {version_2 ? usual : usual / controller};
}

/// The group's path below its mount; empty when it is not visible there.
/// In a container the mount shows a subtree: "/proc/self/cgroup" names the
/// group from the root of the hierarchy and mountinfo the part that is mounted.
path below(const Mount& mount, const std::string& group) {
  path own = path(group).relative_path();
  if (mount.shows != "/")
    own = path(group).lexically_relative(mount.shows).relative_path();
  for (const path& part : own)
    if (part == "..") return {};
  return own == "." ? path() : own;
}

/// Read once: the list is long. It is kept for good and without a lock, which a
/// process that is forked meanwhile would find taken.
std::string mounts_in_sight() {
  static std::atomic<const std::string*> known = nullptr;
  if (const std::string* text = known) return *text;
  auto text =
      std::make_unique<const std::string>(kernel_text("/proc/self/mountinfo"));
  const std::string* none = nullptr;
  // What could not be read may be there the next time.
  if (text->empty() || !known.compare_exchange_strong(none, text.get()))
    return *text;
  return *text.release();
}

CgroupFolders folders_of(std::string_view controller, const path& root,
                         const std::string& mounts) {
  CgroupFolders found;
  std::optional<Group> group =
      group_of(controller, kernel_text(root / "proc/self/cgroup"));
  if (!group) return found;
  found.version_2 = group->version_2;
  Mount mount = mount_of(controller, group->version_2, root, mounts);
  for (path own = below(mount, group->name); !own.empty();
       own = own.parent_path())
    if (std::filesystem::exists(mount.at / own))
      found.folders.push_back(mount.at / own);
  found.folders.push_back(mount.at);
  return found;
}

/// A start asks some twenty times, and each answer takes a third of what all
/// that is read of the host does.
CgroupFolders recent_folders(std::string_view controller) {
  static auto& recent = *new Recent<CgroupFolders>();
  return recent.get(controller, [controller] {
    return folders_of(controller, "/", mounts_in_sight());
  });
}

}  // namespace

std::optional<std::int64_t> number_in(const path& file) {
  const std::string text = kernel_text(file);
  return number_at(std::string_view(text).substr(0, text.find('\n')));
}

std::string kernel_text(const path& file) {
  std::string text;
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return text;
  char part[4096];
  for (ssize_t count; (count = ::read(opened, part, sizeof part)) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    text.append(part, static_cast<std::size_t>(count));
  }
  ::close(opened);
  return text;
}

std::optional<std::string_view> value_of_line(std::string_view text,
                                              std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const std::size_t value = line.find_first_not_of(" \t");
    if (value != 0) return line.substr(std::min(value, line.size()));
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_of_line(std::string_view text,
                                           std::string_view key) {
  const auto value = value_of_line(text, key);
  return value ? number_at(*value) : std::nullopt;
}

std::optional<std::int64_t> number_in(const path& file, std::string_view key) {
  return number_of_line(kernel_text(file), key);
}

std::optional<std::int64_t> process_began(int process) {
  const std::string stat =
      kernel_text("/proc/" + std::to_string(process) + "/stat");
  // Its name stands in parentheses and may hold any others.
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != stat.npos; ++field)
    at = stat.find(' ', at + 1);
  if (at == stat.npos) return std::nullopt;
  return number_at(std::string_view(stat).substr(at));
}

CgroupFolders cgroup_folders(std::string_view controller, const path& root) {
  return root == "/" ? recent_folders(controller)
                     : folders_of(controller, root,
                                  kernel_text(root / "proc/self/mountinfo"));
}

}  // namespace penstock
