#pragma once

#include <string>

#include "penstock/sources/kinds.h"
#include "penstock/sources/spec.h"

namespace penstock {

/// What a URI says, or the name of a file whose kind its end says. Throws
/// Error(request), source.uri, with `path` in front, in which no part of the
/// URI is shown that may be a password.
SourceSpec spec_of_uri(const std::string& uri, const std::string& path);

/// A folder that save_to_disk() of Hugging Face's datasets has written. The
/// folder of a run has a state.json, too, and is not one.
bool is_saved_dataset(const std::string& folder);

/// As it may be stored and shown.
std::string without_secrets_of_uri(const std::string& uri);

}  // namespace penstock
