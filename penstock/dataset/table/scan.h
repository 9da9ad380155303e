#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/dataset/table/scan_parts.h"
#include "penstock/dataset/table/scan_plan.h"
#include "penstock/dataset/table/spill.h"
#include "penstock/dataset/table/store_of_scan.h"
#include "penstock/dataset/table/table_options.h"
#include "penstock/exec/exec.h"

namespace penstock {

/// All rows of a source, parsed and checked, in blocks as they arrived.
struct Scan {
  std::vector<ParsedBlock> blocks;
  ParseNotes notes;
  std::vector<StageNumbers> stages;
  ScanMemory memory;
};

/// Reads `source` once, with `limit.readers` at most. Readers parse what they
/// have read, where there are as many of them as `options.workers`; else, or
/// alone, they hand it to those. With 0 workers all is done on the caller's
/// thread. Values beyond the limit go to `spill`; with `parts`, of a source by
/// position, those of all rows to these, and what they have already is not
/// read; their runs go to `store`, where there is one, meanwhile. Throws what
/// a reader, `spill`, `parts` or `store` throw, and
/// Error(out_of_memory) once the rows take more than the limit all the same;
/// threads have ended when it returns or throws. `only`: the partitions that
/// are scanned, of those that `parts` divides the rows into; null: all.
Scan scan_table(Source& source, const BlockParser::Options& parsing,
                const TableDatasetOptions& options, const ScanLimit& limit,
                Spill& spill, const ScanParts* parts = nullptr,
                StoreOfScan* store = nullptr,
                const std::vector<Partition>* only = nullptr);

}  // namespace penstock
