#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/files/row_file.h"

namespace penstock::zarr {

/// The stores that `path` names: folders that are one, those in a folder whose
/// names end with .zarr, or what a pattern matches.
std::vector<files::DataFile> find_stores(const SourceSpec& spec,
                                         const SourceKind& kind);

/// A column for each array of a store, named by its path in it: "/x",
/// "/group/y".
std::vector<std::shared_ptr<const files::RowFile>> open_stores(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop);

}  // namespace penstock::zarr
