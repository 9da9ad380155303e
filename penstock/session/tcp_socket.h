#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "penstock/base/descriptor.h"

namespace penstock {

/// A connection to a port of a host, by the first of its addresses that answers
/// before `until`, whose calls do not block; false: `why` says why there is no
/// such, "Connection refused".
Descriptor connected_to(const std::string& host, std::uint16_t port,
                        std::chrono::steady_clock::time_point until,
                        std::string& why);

}  // namespace penstock
