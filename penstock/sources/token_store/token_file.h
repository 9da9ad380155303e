#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/files/row_file.h"

namespace penstock::token_store {

/// The files that `path` names, each followed by the index beside it, if there
/// is one, so that the source knows when that changes.
std::vector<files::DataFile> find_stores(const SourceSpec& spec,
                                         const SourceKind& kind);

/// Documents as lists of numbers, `input_ids`, which borrow the mapped file. An
/// index has no rows of its own.
std::vector<std::shared_ptr<const files::RowFile>> open_stores(
    const SourceSpec& spec, const std::vector<files::DataFile>& files,
    StopFlag stop);

}  // namespace penstock::token_store
