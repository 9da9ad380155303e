#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// The number that a small file of the kernel holds. nullopt where there is no
/// such file, or a word such as "max" in it.
std::optional<std::int64_t> number_in(const std::filesystem::path& file);

/// The number of the line "KEY number" or "KEY: number"; `key` is the whole
/// word before it, colon included.
std::optional<std::int64_t> number_in(const std::filesystem::path& file,
                                      std::string_view key);

/// What follows the key in such a line, without the blanks before it.
std::optional<std::string_view> value_of_line(std::string_view text,
                                              std::string_view key);
/// The number of such a line in the text of a file.
std::optional<std::int64_t> number_of_line(std::string_view text,
                                           std::string_view key);
/// When a process began, in the kernel's ticks since the machine's start, which
/// tells it from others that get its number; nullopt if none exists.
std::optional<std::int64_t> process_began(int process);

/// A small file of the kernel, whole; empty if none exists.
std::string kernel_text(const std::filesystem::path& file);

/// Where one controller of the cgroups keeps its files for this process.
struct CgroupFolders {
  /// The process's own folder first, then those above it up to the mount. A
  /// limit holds for all below it, so each of them counts. Where the inner
  /// ones are not visible (in a container) the mount alone; empty without
  /// cgroups.
  std::vector<std::filesystem::path> folders;
  bool version_2 = false;
};

/// Those of one controller. Hosts mix controllers of version 1 with an empty
/// tree of version 2, so each ("cpu", "memory") is looked up alone. Those of
/// this process are at most 0.1 s old. `root` is "/" except in tests, which
/// hand in a made-up tree.
CgroupFolders cgroup_folders(std::string_view controller,
                             const std::filesystem::path& root = "/");

}  // namespace penstock
