#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock {

/// Where the first picture of a GIF file is (GIF89a specification, 1990).
struct GifFrame {
  int width = 0, height = 0;  ///< of the whole: the screen, and what exceeds it
  int left = 0, top = 0, frame_width = 0, frame_height = 0;
  bool interlaced = false;
  int transparent = -1;                ///< the transparent colour; -1: all are
  std::span<const std::byte> colours;  ///< three bytes each
  int code_bits = 0;                   ///< of the least code
  std::size_t data = 0;                ///< where its blocks begin
};

/// Finds it. What is wrong; empty: nothing, and its blocks have an end.
std::string find_gif_frame(std::span<const std::byte> bytes, GifFrame& frame);

}  // namespace penstock
