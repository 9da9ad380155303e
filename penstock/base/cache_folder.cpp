#include "penstock/base/cache_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <system_error>

namespace penstock {

std::filesystem::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder = "/tmp";
  if (cache != nullptr && *cache == '/')
    folder = cache;
  else if (home != nullptr && *home != '\0')
    folder = std::filesystem::path(home) / ".cache";
  return folder / "penstock";
}

void drop_unused(const std::filesystem::path& folder) {
  constexpr std::time_t kUnused = 90 * 24 * 60 * 60;
  const std::time_t now = std::time(nullptr);
  std::error_code failed;
  for (const auto& file : std::filesystem::directory_iterator(folder, failed)) {
    struct stat status {};
    // Reading through a mapping counts, too.
    if (::lstat(file.path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        std::max(status.st_atime, status.st_mtime) < now - kUnused)
      std::filesystem::remove(file.path(), failed);
  }
}

}  // namespace penstock
