#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/files/row_file.h"

namespace penstock::npy {

/// The files that `path` names; with `arrays` those of each column, so that
/// the first files of all columns stand together, then the second ones.
std::vector<files::DataFile> find_arrays(const SourceSpec& spec,
                                         const SourceKind& kind);

/// A .npy file has the one column `array`, unless `arrays` names it; .npz and
/// .safetensors files have a column for each array of at least one dimension.
std::vector<std::shared_ptr<const files::RowFile>> open_arrays(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop);

}  // namespace penstock::npy
