#pragma once

#include <memory>
#include <string>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/json_set/options.h"

namespace penstock {

/// The kind `json_set`. A row's values are a run of float64: the number of
/// kept elements, then keys x elements in element order. A missing value is
/// the one quiet NaN std::numeric_limits<double>::quiet_NaN(); negative zero is
/// zero; booleans are 0 and 1. What is stored is the tensors NAME, float32
/// [max, keys], and NAME_mask, float32 [max].
std::shared_ptr<const FieldKind> make_json_set(std::string name, JsonSet set);

}  // namespace penstock
