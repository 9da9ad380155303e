#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "penstock/base/descriptor.h"

namespace penstock {

/// A connection to a port of a host, whose calls do not block, by the first of
/// the host's addresses that answers; all of them together have the time until
/// `until`. False: `why` says what the last one answered, "Connection refused".
Descriptor connected_to(const std::string& host, std::uint16_t port,
                        std::chrono::steady_clock::time_point until,
                        std::string& why);

}  // namespace penstock
