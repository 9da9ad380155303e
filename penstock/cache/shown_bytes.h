#pragma once

#include <cstddef>
#include <string>

namespace penstock {

/// "1.5 GiB", "12.0 MiB", "17 B".
std::string shown_bytes(std::size_t bytes);

}  // namespace penstock
