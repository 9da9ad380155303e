#pragma once

#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// "4 ranks on gpu01, gpu02 (torchrun, gradients added by gloo). The others
/// wait for rank 2 on gpu02 12.0 % of the time: its batches come late." Empty
/// for a run of one process.
std::string ranks_sentence(const Json& report);

}  // namespace penstock
