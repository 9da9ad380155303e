#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/sources/images/picture_files.h"

namespace penstock::images {

/// What find_pictures() found in class folders, as it was kept by an earlier
/// start in the user's cache folder; nullopt: nothing was kept, or it cannot be
/// used: one of the folders has changed since, so that files may have come or
/// gone, or it is damaged. Never throws.
std::optional<PictureFiles> kept_listing(const std::string& root,
                                         const Media& media);

/// Keeps a listing whose search began at `began_ns` (since the epoch of the
/// system's clock). Not where a folder changed in the two seconds before: it
/// could change again without a later time. Never throws: the next start then
/// searches again.
void keep_listing(const PictureFiles& files,
                  const std::vector<FoundFolder>& folders,
                  std::int64_t began_ns);

}  // namespace penstock::images
