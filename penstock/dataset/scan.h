#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "penstock/dataset/parsed_rows.h"
#include "penstock/dataset/scan_parts.h"
#include "penstock/dataset/spill.h"
#include "penstock/dataset/store_of_scan.h"
#include "penstock/dataset/table_options.h"
#include "penstock/exec/exec.h"

namespace penstock {

/// What a scan may hold in host memory: its parsed rows, and what bringing them
/// into order takes.
struct ScanLimit {
  std::optional<std::size_t> bytes;  ///< none: free memory is unknown
  std::string why;                   ///< "80 % of 1.0 GiB free (MemAvailable)"
  int readers = 1;  ///< of the source at once, as many as there is memory for
  std::size_t reader_bytes = 0;  ///< of all of them, beside `bytes`
  /// As Source::count() has it, which may read all of a small table: only for
  /// who is told how far the scan has come.
  std::optional<std::int64_t> expected_rows;

  std::string text() const;  ///< "0.8 GiB: 80 % of 1.0 GiB free", for people
};

/// `options.scan_bytes`, or a share of what is free now, without what as many
/// readers of `source` take as gain something: all of them take no more than
/// half of that share, unless one does.
ScanLimit scan_limit(const Source& source, const TableDatasetOptions& options);

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
/// threads have ended when it returns or throws.
Scan scan_table(Source& source, const BlockParser::Options& parsing,
                const TableDatasetOptions& options, const ScanLimit& limit,
                Spill& spill, const ScanParts* parts = nullptr,
                StoreOfScan* store = nullptr);

}  // namespace penstock
