#pragma once

#include <memory>

#include "penstock/dataset/table_dataset.h"

namespace penstock {

/// Fills rows that a table keeps: those that are stored as a batch holds them
/// are gathered, the others finished.
std::unique_ptr<SlotFiller> make_table_filler(const TableDataset& dataset,
                                              FillMeters& meters,
                                              const FillerOptions& options);

}  // namespace penstock
