#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/source.h"

namespace penstock {

/// The rows of several sources, one source after the other, as one source. They
/// must give columns of the same types for the same requests, and all have keys
/// of one type or all have positions; positions continue where the source
/// before ends. Else an Error(request).
///
/// Each source has a snapshot of its own, taken one after the other: a row that
/// is moved from one to another meanwhile may be in neither.
///
/// No key may be in two of them: a data set that finds one reports it
/// (`source.duplicate_key`). A read by keys asks the sources in turn, each for
/// the keys that were not found before.
std::unique_ptr<Source> concatenated(
    std::vector<std::unique_ptr<Source>> sources);

}  // namespace penstock
