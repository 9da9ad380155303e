#pragma once

#include <filesystem>

namespace penstock {

/// `penstock` in the user's cache folder: $XDG_CACHE_HOME, or ~/.cache, or
/// /tmp. It need not be there yet.
std::filesystem::path cache_folder();

}  // namespace penstock
