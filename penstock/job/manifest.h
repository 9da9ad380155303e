#pragma once

#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/job/manifest_key.h"

namespace penstock {

/// A file of settings of another program, JSON or YAML. Throws Error(request)
/// for one that cannot be read.
Json read_manifest(const std::string& path);

/// Puts the keys of a manifest, those at its top and those below `training` and
/// `config`, into a job as the settings that they are here
/// (docs/how-to/coming_from.md has the table); sections of a job go in as they
/// are. Gives all keys, also those that are not understood. Throws
/// Error(request), code manifest.value, for keys that contradict each other,
/// and for a value that no setting can be made of.
std::vector<ManifestKey> apply_manifest(const Json& manifest, Json& document);

/// The keys that apply_manifest() understands, sorted.
std::vector<std::string> manifest_keys();

}  // namespace penstock
