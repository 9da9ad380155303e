#pragma once

#include "penstock/base/json.h"
#include "penstock/dataset/dataset.h"

namespace penstock {

/// How a person finds a sample: see Dataset::key_of(). Null for padding.
inline Json key_of(const Dataset& rows, SampleId sample) {
  return sample < 0 ? Json() : rows.key_of(sample);
}

}  // namespace penstock
