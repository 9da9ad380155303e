#pragma once

#include <memory>

#include "penstock/dataset/indexed/indexed_dataset.h"
#include "penstock/dataset/table/table_dataset.h"

namespace penstock {

/// What batches are made of, from a source that was opened with
/// `requests_of(options)`: the data set that decide() has chosen, and a
/// PackedDataset of that where a field packs its samples. Throws what these
/// throw, and packing_of().
/// `options.planned` is called in all cases, `options.scanning` before a scan.
std::shared_ptr<const Dataset> prepare_dataset(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device);
/// The same of a source that its fields are bound to.
std::shared_ptr<const Dataset> prepare_dataset(
    const TableDatasetOptions& options, BoundSource source, Device& device);

}  // namespace penstock
