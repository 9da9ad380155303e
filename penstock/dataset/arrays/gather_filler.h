#pragma once

#include <memory>
#include <vector>

#include "penstock/cache/cache.h"
#include "penstock/dataset/filler.h"

namespace penstock {

/// Fills rows that are kept: a gather from the tables that `fields` name;
/// field f goes to output `outputs[f]` of the data set. `fields[f].out` is set
/// for each item. The gather is queued where a device can read the tier, else
/// done at once.
std::unique_ptr<SlotFiller> make_gather_filler(std::vector<GatherField> fields,
                                               std::vector<std::size_t> outputs,
                                               Tier tier, StageMeter& meter);

}  // namespace penstock
