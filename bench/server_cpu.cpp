#include "bench/server_cpu.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace penstock {
namespace {

/// The times of /proc/PID/stat when it is a process of PostgreSQL, in ticks:
/// its own and those of its children that it has waited for, as the server's
/// first process does for all others.
std::optional<std::int64_t> ticks_of(const std::filesystem::path& stat) {
  std::ifstream file(stat);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::size_t end = line.rfind(')');
  if (end == std::string::npos || line.find("(postgres)") + 9 != end)
    return std::nullopt;
  std::istringstream fields(line.substr(end + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  std::int64_t user = 0, system = 0, child_user = 0, child_system = 0;
  fields >> user >> system >> child_user >> child_system;
  return user + system + child_user + child_system;
}

}  // namespace

std::optional<double> postgres_cpu_seconds() {
  std::int64_t ticks = 0;
  bool found = false;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::optional<std::int64_t> more = ticks_of(entry.path() / "stat");
    if (!more) continue;
    ticks += *more;
    found = true;
  }
  if (!found) return std::nullopt;
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace penstock
