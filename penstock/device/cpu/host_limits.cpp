#include "penstock/device/cpu/host_limits.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace penstock {
namespace {

using std::filesystem::path;

// What one version of the memory cgroup calls its files.
struct Cgroup {
  path mount;
  std::string_view limit, usage, cache;  // `cache` is a line of memory.stat
};

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t value = 0;
  auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::size_t> number_of(const path& file) {
  std::string word;  // "max" means none
  std::ifstream(file) >> word;
  return number_in(word);
}

// The number after `name` in a file of lines "name number".
std::optional<std::size_t> line_of(const path& file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    std::string_view rest = std::string_view(line).substr(name.size());
    std::size_t digits = rest.find_first_not_of(" \t");
    if (digits != rest.npos && digits > 0)
      return number_in(rest.substr(digits));
  }
  return std::nullopt;
}

void lower(DeviceMemory& memory, const path& folder, const Cgroup& cgroup) {
  std::optional<std::size_t> limit = number_of(folder / cgroup.limit);
  std::optional<std::size_t> usage = number_of(folder / cgroup.usage);
  if (!limit || !usage) return;
  std::size_t cache = line_of(folder / "memory.stat", cgroup.cache).value_or(0);
  std::size_t used = *usage - std::min(*usage, cache);
  memory.total = std::min(memory.total, *limit);
  memory.free = std::min(memory.free, *limit - std::min(*limit, used));
}

// A limit holds for all below it, so every folder up to the mount counts. In
// a container the inner ones may not be visible; then the mount is its own.
void lower_by_all(DeviceMemory& memory, std::string_view group,
                  const Cgroup& cgroup) {
  path below(group.substr(std::min(group.size(), group.find('/') + 1)));
  if (group.find("..") != group.npos) below.clear();
  for (; !below.empty(); below = below.parent_path())
    lower(memory, cgroup.mount / below, cgroup);
  lower(memory, cgroup.mount, cgroup);
}

}  // namespace

DeviceMemory host_limits(const path& root) {
  constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();
  auto kib = [&](std::string_view name) {
    auto found = line_of(root / "proc/meminfo", name);
    return found ? *found * 1024 : kUnknown;
  };
  DeviceMemory memory{.free = kib("MemAvailable:"), .total = kib("MemTotal:")};
  Cgroup v2{root / "sys/fs/cgroup", "memory.max", "memory.current",
            "inactive_file"};
  Cgroup v1{root / "sys/fs/cgroup/memory", "memory.limit_in_bytes",
            "memory.usage_in_bytes", "total_inactive_file"};
  // Lines "number:controllers:/group"; v2 names no controllers.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::size_t first = line.find(':');
    std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::string names(1, ',');
    names.append(line, first + 1, second - first - 1).push_back(',');
    std::string_view group = std::string_view(line).substr(second + 1);
    if (names == ",,") lower_by_all(memory, group, v2);
    if (names.find(",memory,") != names.npos) lower_by_all(memory, group, v1);
  }
  memory.free = std::min(memory.free, memory.total);
  return memory;
}

}  // namespace penstock
