#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// A PNG file without compression. `rgb`: three bytes for each pixel, line by
/// line.
std::string png_of(const std::vector<std::uint8_t>& rgb, int width, int height);
std::string base64_of(std::string_view bytes);

}  // namespace penstock
