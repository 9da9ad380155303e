#pragma once

#include <cstdint>

#include "penstock/session/session.h"

namespace penstock {

/// Whether two halves of so many rows take less memory than all of them at
/// once: the second half adds its gradients to those of the first, which then
/// exist beside its activations. By trials of made-up rows, or of fewer where
/// these do not fit; true where nothing can be tried.
bool halves_take_less(StepMemory& memory, std::int64_t rows);

}  // namespace penstock
