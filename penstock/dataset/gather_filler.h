#pragma once

#include <memory>
#include <vector>

#include "penstock/cache/cache.h"
#include "penstock/dataset/filler.h"

namespace penstock {

/// Fills rows that are kept: a gather from the tables that `fields` name, in
/// order of the layout's tensors. `fields[t].out` is set for each target. In
/// tier `device` the gather is queued, else done at once.
std::unique_ptr<SlotFiller> make_gather_filler(std::vector<GatherField> fields,
                                               Tier tier, StageMeter& meter);

}  // namespace penstock
