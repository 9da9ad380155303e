#pragma once

#include <string>

#include "penstock/dataset/dataset_base.h"

namespace penstock {

/// Throws Error(source), code source.fingerprint, where the data set's
/// fingerprint does not begin with `expected`, which `source.fingerprint`
/// names.
void check_fingerprint(const Dataset& dataset, const std::string& expected,
                       const std::string& source);

}  // namespace penstock
