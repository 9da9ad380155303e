#pragma once

#include <memory>
#include <string>

#include "penstock/dataset/indexed_dataset.h"
#include "penstock/dataset/table_dataset.h"

namespace penstock {

/// Why these rows are scanned before the first batch, for people; empty: they
/// are not. It depends on the options and the source alone, never on
/// `options.statistics`, so that a run that is resumed has the data set (and
/// the fingerprint) that it was saved with.
std::string scan_reason(const TableDatasetOptions& options,
                        const Source& source);

/// What identifies rows that are kept though they could be read one by one: a
/// state that was saved without a scan goes on with them. Empty for all others.
std::string named_fingerprint(const TableDatasetOptions& options,
                              const Source& source);

/// What batches are made of, from a source that was opened with
/// `requests_of(options)`: an IndexedDataset where nothing needs a scan, a
/// GrowingDataset where rows are prepared while batches are made and there is
/// no store yet, else what TableDataset::prepare() gives after a scan; a
/// PackedDataset of these where a field packs its samples. Throws what these
/// throw, packing_of(), and Error(request), code data.not_meanwhile.
/// `options.planned` is called in all cases, `options.scanning` before a scan.
std::shared_ptr<const Dataset> prepare_dataset(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device);

}  // namespace penstock
