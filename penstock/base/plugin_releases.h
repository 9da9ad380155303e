#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace penstock {

/// The releases of an outside library that a plugin was built for, newest
/// first: "2600" where one of these folders has PREFIX2600.so.
std::vector<std::string> plugin_releases(
    const std::string& prefix,
    const std::vector<std::filesystem::path>& folders);

}  // namespace penstock
