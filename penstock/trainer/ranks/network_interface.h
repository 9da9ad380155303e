#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace penstock {

/// The network interface ("eth0") by which this machine reaches a host; empty
/// where the host has no address, or none that a route leads to. gloo by itself
/// takes the interface of this machine's own name, which on many is loopback.
std::string interface_to(const std::string& host, std::uint16_t port);

/// Connects to a port of a host, again and again, until it answers or the time
/// is over. Why it has not answered, "Connection refused"; empty: it has.
std::string why_unreachable(const std::string& host, std::uint16_t port,
                            std::chrono::milliseconds patience);

}  // namespace penstock
