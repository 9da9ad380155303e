#pragma once

#include "penstock/base/json.h"
#include "penstock/dataset/dataset.h"

namespace penstock {

/// How a person finds a sample: its key in `table`, or its number where the
/// rows have no keys (null). Null for padding.
inline Json key_of(const TableDataset* table, SampleId sample) {
  if (sample < 0) return {};
  return table != nullptr ? table->keys().json(sample) : Json(sample);
}

}  // namespace penstock
