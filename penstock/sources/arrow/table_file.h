#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/table_writer.h"

namespace penstock::arrow_files {

/// Writes the file `spec.path`, Parquet or Arrow IPC as `spec.kind` says, in
/// pieces of about 64,000 rows, so that its memory does not grow with the rows.
/// finish() replaces an existing file, or makes the file. Throws
/// Error(request): source.write for what Arrow says, source.read_only for a
/// kind that is not a file's.
std::unique_ptr<TableWriter> make_table(const SourceSpec& spec,
                                        const std::vector<NewColumn>& columns,
                                        bool replace);

}  // namespace penstock::arrow_files
