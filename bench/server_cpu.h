#pragma once

#include <optional>

namespace penstock {

/// Seconds of processor time that the PostgreSQL servers of this machine have
/// spent so far, those of their processes included that have ended; nullopt
/// if none exists here. Counted in ticks of 10 ms: measure a second.
std::optional<double> postgres_cpu_seconds();

}  // namespace penstock
