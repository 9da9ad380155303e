#pragma once

#include <filesystem>

namespace penstock {

/// `penstock` in the user's cache folder: $XDG_CACHE_HOME, or ~/.cache, or
/// /tmp. It need not be there yet.
std::filesystem::path cache_folder();

/// Removes the files of a folder that nobody has read for 90 days: what is kept
/// of a data set that is gone. One that cannot be looked at stays.
void drop_unused(const std::filesystem::path& folder);

}  // namespace penstock
