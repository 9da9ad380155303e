#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "penstock/dataset/opened_source.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

// A preparation that several processes share: each scans a part of the rows
// into files beside the store that is to be made (ScanParts), and a preparation
// as any other makes the store of them. So its bytes are those of one process.
// All processes see the same files of the source, and the same folder of
// stores.

/// Which part of a scan: one of `of`, from 1.
struct PartOfScan {
  int part = 1, of = 1;
};

/// What a part has scanned.
struct ScannedRows {
  std::filesystem::path store;  ///< that its rows are for
  bool already = false;         ///< it is there: nothing was scanned
  std::int64_t rows = 0;        ///< of the source that belong to the part
  std::int64_t found = 0;       ///< of these, what an earlier call has left
};

/// Scans the rows of `which`. They follow each other, so that little of a file
/// is read twice. Called again, it continues where it was.
///
/// Throws Error(request), code prepare.parts, for rows that have no positions
/// or no store to go to, and Error(source), prepare.changed, where the source
/// has changed meanwhile: nothing is left then.
ScannedRows scan_part(const TableDatasetOptions& options,
                      const BoundSource& source, const PartOfScan& which);

/// Throws Error(request), code prepare.missing_part, which names the parts that
/// are not there yet; prepare.other_version where they are there for another
/// version of the source, or other settings. Does nothing where the store is
/// there.
void check_parts_are_there(const TableDatasetOptions& options,
                           const BoundSource& source);

}  // namespace penstock
