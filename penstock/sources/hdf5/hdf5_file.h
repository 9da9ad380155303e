#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/hdf5/row_columns.h"

namespace penstock::hdf5 {

/// Opens the files of a source, as a FileKind does: each is indexed in the
/// index process. A file that cannot be is left out, with a warning, where
/// `source.on_bad` is "skip". Rows of the data sets in `windows` are windows;
/// Error(request), source.window, where such a column cannot have windows.
std::vector<std::shared_ptr<const files::RowFile>> open_hdf5(
    const SourceSpec& spec, const std::vector<files::DataFile>& files,
    const std::vector<WindowsOf>& windows, StopFlag stop);

}  // namespace penstock::hdf5
