#pragma once

#include <memory>
#include <string>

#include "penstock/dataset/indexed/indexed_dataset.h"
#include "penstock/dataset/table/table_dataset.h"

namespace penstock {

/// What identifies rows that are kept though they could be read one by one: a
/// state that was saved without a scan continues with them. Empty for all
/// others.
std::string named_fingerprint(const TableDatasetOptions& options,
                              const Source& source);

/// What batches are made of, from a source that was opened with
/// `requests_of(options)`: the data set that decide() has chosen, and a
/// PackedDataset of that where a field packs its samples. Throws what these
/// throw, and packing_of().
/// `options.planned` is called in all cases, `options.scanning` before a scan.
std::shared_ptr<const Dataset> prepare_dataset(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device);

}  // namespace penstock
