#pragma once

#include <cstdint>

namespace penstock {

/// How often the program's threads have called `operator new` so far. A
/// program that links allocations.cpp counts them all.
std::int64_t allocations();

}  // namespace penstock
