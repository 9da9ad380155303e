#pragma once

#include <vector>

#include "penstock/dataset/parsed_rows.h"
#include "penstock/dataset/table_dataset.h"

namespace penstock {

/// All rows of a source, parsed and checked, in blocks as they arrived.
struct Scan {
  std::vector<ParsedBlock> blocks;
  ParseNotes notes;
  std::vector<StageNumbers> stages;
};

/// Reads `source` once. Readers parse what they have read, where there are as
/// many of them as `options.workers`; else, or alone, they hand it to those.
/// With 0 workers all is done on the caller's thread. Throws what a reader
/// throws; threads have ended when it returns or throws.
Scan scan_table(Source& source, const BlockParser::Options& parsing,
                const TableDatasetOptions& options);

}  // namespace penstock
