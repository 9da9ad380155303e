#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/// Writes red, green and blue of a row of pixels of three bytes, each to its
/// own plane, `plane` bytes apart; mirrored: from right to left.
void split_channels(const std::uint8_t* rgb, std::size_t width, bool mirrored,
                    std::size_t plane, std::uint8_t* to);

}  // namespace penstock
