#pragma once

#include <cstddef>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/parameter.h"

namespace penstock {

/// Copies tensors to the host, under their names, into `memory` where that is
/// as large. Waits for the device.
ModelState state_of(const std::vector<Parameter>& tensors,
                    std::vector<std::byte> memory = {});

/// Copies a state into these tensors, by name. Throws Error(request) that names
/// the first one that is missing, has another shape or type, or is not known;
/// then nothing was changed.
void copy_state(const ModelState& state, const std::vector<Parameter>& tensors);

}  // namespace penstock
