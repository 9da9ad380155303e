#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

/// A rectangle of pixels; `left` and `top` count from the upper left corner.
struct PictureBox {
  int left = 0, top = 0, width = 0, height = 0;

  friend bool operator==(const PictureBox&, const PictureBox&) = default;
};

/// What a pixel is: three bytes or one; of masks the number of a class, which
/// is no brightness.
enum class PictureMode : std::uint8_t { rgb, grey, index };

inline std::size_t bytes_of(PictureMode mode) {
  return mode == PictureMode::rgb ? 3 : 1;
}

/// A rectangle of a picture in memory, whose rows lie `stride` bytes apart.
/// Vector code reads up to kReadBehind bytes behind its last pixel.
struct PixelView {
  static constexpr int kReadBehind = 64;

  const std::uint8_t* first = nullptr;
  std::size_t stride = 0;
  int width = 0, height = 0;
  PictureMode mode = PictureMode::rgb;

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * bytes_of(mode);
  }
  const std::uint8_t* row(int y) const {
    return first + static_cast<std::size_t>(y) * stride;
  }
};

/// A picture in memory, row by row without gaps. Keeps its memory for the next
/// one.
struct Pixels {
  int width = 0, height = 0;
  PictureMode mode = PictureMode::rgb;

  void reshape(int new_width, int new_height, PictureMode new_mode) {
    width = new_width;
    height = new_height;
    mode = new_mode;
    const std::size_t bytes = row_bytes() * static_cast<std::size_t>(height);
    if (bytes_.size() >= bytes + PixelView::kReadBehind) return;
    // Growing would hold the pixels of before beside twice as much.
    std::vector<std::uint8_t>().swap(bytes_);
    bytes_.resize(bytes + PixelView::kReadBehind);
  }
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * bytes_of(mode);
  }
  std::uint8_t* row(int y) {
    return bytes_.data() + static_cast<std::size_t>(y) * row_bytes();
  }
  const std::uint8_t* row(int y) const {
    return bytes_.data() + static_cast<std::size_t>(y) * row_bytes();
  }
  /// That are held, for this picture or a larger one.
  std::size_t held() const { return bytes_.size(); }
  PixelView view() const { return {row(0), row_bytes(), width, height, mode}; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// A pixel's brightness, as Pillow's convert("L") has it.
inline std::uint8_t grey_of(int red, int green, int blue) {
  return static_cast<std::uint8_t>(
      (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

}  // namespace penstock
