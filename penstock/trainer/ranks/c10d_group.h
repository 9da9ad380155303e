#pragma once

#include <memory>

#include "penstock/session/session.h"

namespace penstock {

/// See open_ranks_of().
std::unique_ptr<RankGroup> open_ranks(const RankPlace& place);

}  // namespace penstock
