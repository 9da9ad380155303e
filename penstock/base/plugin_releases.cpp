#include "penstock/base/plugin_releases.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace penstock {

std::vector<std::string> plugin_releases(
    const std::string& prefix,
    const std::vector<std::filesystem::path>& folders) {
  constexpr std::string_view kEnd = ".so";
  std::vector<std::string> releases;
  for (const std::filesystem::path& folder : folders) {
    std::error_code unknown;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder, unknown)) {
      std::string name = entry.path().filename();
      if (!name.starts_with(prefix) || !name.ends_with(kEnd)) continue;
      name =
          name.substr(prefix.size(), name.size() - prefix.size() - kEnd.size());
      if (std::ranges::find(releases, name) == releases.end())
        releases.push_back(std::move(name));
    }
  }
  // A longer number is a larger one: 2.11 is newer than 2.9.
  std::ranges::sort(releases, [](const auto& left, const auto& right) {
    return std::pair(left.size(), left) > std::pair(right.size(), right);
  });
  return releases;
}

}  // namespace penstock
