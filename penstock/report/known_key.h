#pragma once

#include "penstock/session/session.h"

namespace penstock {

/// The key of a sample; its number where the key cannot be read, which is
/// logged: a run that has ended has its report all the same.
Json known_key_of(const Dataset& rows, SampleId sample);

}  // namespace penstock
