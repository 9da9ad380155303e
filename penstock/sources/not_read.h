#pragma once

#include <string>

namespace penstock {

// Formats of data sets that are known and not read, so that an error can name
// what their rows can be written as.

/// Throws Error(request), files.not_read, where a URI names one: by its kind
/// ("lmdb:PATH"), by the name of a file ("x.beton"), or by what lies in a
/// folder (data.mdb; an index.json of MDS).
void refuse_not_read(const std::string& uri, const std::string& setting);

/// The same of the name of a kind: "lmdb".
void refuse_kind_not_read(const std::string& kind, const std::string& setting);

}  // namespace penstock
