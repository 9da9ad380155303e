#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// A PNG file without compression. `rgb`: three bytes for each pixel, line by
/// line.
std::string png_of(const std::vector<std::uint8_t>& rgb, int width, int height);

}  // namespace penstock
