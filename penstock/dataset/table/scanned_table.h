#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/dataset/dataset_facts.h"
#include "penstock/dataset/table/placement.h"
#include "penstock/dataset/table/scan.h"
#include "penstock/dataset/table/table_origin.h"
#include "penstock/dataset/table/table_store.h"

namespace penstock {

/// Which rows a table has, wherever they are kept.
struct FoundRows {
  /// Null: they are only planned.
  std::shared_ptr<const TableKeys> keys = {};
  /// SHA-256 over keys and prepared rows in order of id, in hex, or what
  /// identifies them instead.
  std::string fingerprint = {};
  SideIndexes sides = {};
  std::shared_ptr<const Draws> draws = {};
  ScanFacts scan = {};
  std::vector<Json> statistics = {};  ///< by field
};

/// The rows of a table as a scan has parsed them: which there are, in order of
/// id, and their values, which packing consumes.
struct ScannedTable {
  /// Reads the table. Throws what scan_table() throws; Error(transform), code
  /// data.bad_rows, and Error(source), code source.empty or
  /// source.duplicate_key. `meter` counts what follows the reading.
  ScannedTable(const TableOrigin& origin, const TableStore& file,
               StageMeter& meter);
  ~ScannedTable();
  ScannedTable(const ScannedTable&) = delete;
  ScannedTable& operator=(const ScannedTable&) = delete;

  Spill spill;
  std::optional<ScanParts> parts;      ///< where the scan can go on later
  std::unique_ptr<StoreOfScan> begun;  ///< the rows are scanned into it
  Scan pass;
  RowsById rows;  ///< of `pass`
  FoundRows found;
  std::vector<NamedFile> named_files;  ///< that columns name
};

MeasuredRows measured(const TableOrigin& origin, const ScannedTable& scanned);

}  // namespace penstock
