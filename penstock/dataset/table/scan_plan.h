#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "penstock/base/host_limits.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// What a scan may hold in host memory: its parsed rows, and what bringing them
/// into order takes.
struct ScanLimit {
  std::optional<std::size_t> bytes;  ///< none: free memory is unknown
  std::string why;                   ///< "80 % of 1.0 GiB free (MemAvailable)"
  int readers = 1;  ///< of the source at once, as many as there is memory for
  std::size_t reader_bytes = 0;  ///< of all of them, beside `bytes`
  /// Rows, as Source::count() has it, for who is told how far the scan has
  /// come.
  std::optional<std::int64_t> expected_rows;

  std::string text() const;  ///< "0.8 GiB: 80 % of 1.0 GiB free", for people
};

/// What decides how a table is scanned.
struct AskedScan {
  std::optional<std::size_t> bytes = {};  ///< TableDatasetOptions::scan_bytes
  int workers = 1;
  int connections = 0;           ///< to a server; 0: none
  bool one_reader = false;       ///< a second one gains nothing
  std::size_t reader_bytes = 0;  ///< of each
  std::optional<std::int64_t> expected_rows = {};
  bool by_key = false, by_position = false;
  bool resumable = false;     ///< a scan that is interrupted shall go on
  bool keeps_values = true;   ///< not keys, sides and hashes alone
  bool store_usable = false;  ///< by a later run
  bool runs_to_disk = false;  ///< runs that need no statistics, and a store
};

/// How it is.
struct ScanPlan {
  ScanLimit limit;
  /// Rows go to files as they are parsed, from where an interrupted scan goes
  /// on.
  bool in_parts = false;
  bool into_store = false;  ///< and their runs into the store meanwhile
};

/// A pure function. A scan may hold `asked.bytes`, or a share of what is free,
/// without what as many readers as gain something take: all of them take no
/// more than half of that share, unless one does.
ScanPlan decide_scan(const AskedScan& asked, const HostLimits& host);

/// What the options and the source decide of it. Where somebody is told how far
/// the scan has come, the rows are counted, which may read all of a small
/// table.
AskedScan asked_scan(const TableDatasetOptions& options, const Source& source);

}  // namespace penstock
