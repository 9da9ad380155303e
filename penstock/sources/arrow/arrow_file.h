#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/files/row_file.h"

namespace penstock::arrow_files {

/// Open the files of a kind, as a FileKind does. Nothing of Arrow is seen here.
std::vector<std::shared_ptr<const files::RowFile>> open_parquet(
    const SourceSpec& spec, const std::vector<files::DataFile>& files,
    StopFlag stop);
std::vector<std::shared_ptr<const files::RowFile>> open_ipc(
    const SourceSpec& spec, const std::vector<files::DataFile>& files,
    StopFlag stop);

/// The Arrow files of a Hugging Face data set as it lies on disk: a folder of
/// save_to_disk(), or one of the cache. Throws Error(request), source.part,
/// where it has several parts and none is chosen.
std::vector<files::DataFile> find_hf_files(const SourceSpec& spec,
                                           const SourceKind& kind);

}  // namespace penstock::arrow_files
