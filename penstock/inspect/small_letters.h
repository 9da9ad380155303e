#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock {

/// A picture of RGB that is drawn on.
struct RgbCanvas {
  std::vector<std::uint8_t>& rgb;
  int width;
};

/// Letters of 3 x 5 dots, each of `dot` x `dot` pixels.
struct SmallLetters {
  static constexpr int kWidth = 3, kHeight = 5;

  int dot = 1;

  int height() const { return kHeight * dot; }
  /// Of a letter and the room behind it.
  int advance() const { return (kWidth + 1) * dot; }
  /// In black, as many letters as fit in `most` pixels. What is not ASCII is a
  /// block for each character of UTF-8.
  void draw(std::string_view text, const RgbCanvas& on, int left, int top,
            int most) const;
};

}  // namespace penstock
