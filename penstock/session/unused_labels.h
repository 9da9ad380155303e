#pragma once

#include <string>
#include <vector>

#include "penstock/sources/sources.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

/// Which column of labels lies beside token ids and is not used by their field,
/// for people; empty: none.
std::string unused_labels_text(const Schema& schema,
                               const std::vector<Field>& fields);

}  // namespace penstock
