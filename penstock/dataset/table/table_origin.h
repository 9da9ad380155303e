#pragma once

#include <memory>
#include <vector>

#include "penstock/dataset/table/block_parser.h"
#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/dataset/table/table_options.h"
#include "penstock/dataset/table/table_store.h"

namespace penstock {

/// What the rows of a table are prepared from, and how: before the scan and
/// whenever some of them are read again. Immutable.
struct TableOrigin {
  /// Throws Error(request) for weights that are no numbers, and Error(request),
  /// code source.no_key, for rows with neither keys nor positions.
  TableOrigin(const TableDatasetOptions& options, BoundSource source);

  const TableDatasetOptions options;
  const std::shared_ptr<Source> source;
  const BoundFields bound;
  const RowLayout layout;  ///< of a stored row, apart from its runs
  const BlockParser::Options parsing;

  const ColumnType key_type;  ///< of keys, or of the positions of rows
  /// By field, bytes of an element of its runs; 0: it has none.
  const std::vector<std::size_t> element_bytes;
  /// One field has runs, and no field anything else: they go to a store as they
  /// are encoded, and are not held in memory.
  const bool runs_alone;
  /// Where an earlier run may have left the rows, in this order; the last is
  /// what is written. None where stores are not used.
  const std::vector<TableStore> stores;

  RowEncoder encoder(const std::vector<Json>& statistics) const {
    return {bound, options.fields, layout, statistics, source.get()};
  }
};

}  // namespace penstock
