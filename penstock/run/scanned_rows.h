#pragma once

#include "penstock/dataset/dataset.h"

namespace penstock {

/// The rows of a scan that batches are made of, packed or as they are; null
/// where there was no scan.
inline const TableDataset* scanned_rows(const Dataset* rows) {
  if (const auto* bins = dynamic_cast<const PackedDataset*>(rows))
    rows = bins->samples().get();
  return dynamic_cast<const TableDataset*>(rows);
}

}  // namespace penstock
