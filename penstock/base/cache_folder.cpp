#include "penstock/base/cache_folder.h"

#include <cstdlib>

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

}  // namespace penstock
