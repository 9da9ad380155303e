#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

enum class Interpolation : std::uint8_t { nearest, bilinear, bicubic, lanczos };

/// A part of one axis of a picture that is resized: pixels [begin, end) of
/// `size` become `out` pixels, of which `count` from `first` on are wanted.
struct ResizeAxis {
  int size = 0;
  float begin = 0, end = 0;  // Pillow subtracts in float32
  int out = 0;
  int first = 0, count = 0;

  /// All of an axis, resized as a whole.
  static ResizeAxis whole(int size, int out) {
    return {.size = size,
            .begin = 0,
            .end = static_cast<float>(size),
            .out = out,
            .first = 0,
            .count = out};
  }
};

/// Which pixels of an axis make each of the pixels that are wanted, and with
/// which weights: Pillow's numbers, in its fixed point.
struct ResizeTaps {
  static constexpr int kBits = 22;  ///< of a weight behind the point
  /// Weights of so many fit into numbers of 16 bits, which vector code takes
  /// at once; bytes may then differ from Pillow's by one.
  static constexpr int kFewBits = 14;

  int bits = kBits;       ///< which of them
  int size = 0, out = 0;  ///< of the axis
  int most = 0;           ///< of one pixel; its weights stand `most` apart
  std::vector<int> first, count;
  std::vector<std::int32_t> weights;

  const std::int32_t* weights_of(std::size_t pixel) const {
    return weights.data() + pixel * static_cast<std::size_t>(most);
  }
  /// The pixels of the source that any of them uses: [begin, end).
  int begin() const;
  int end() const;
};

/// Antialiased, as Pillow has it since version 2.7: the filter grows with the
/// scale. With as many bits as `taps` have.
void make_taps(Interpolation interpolation, const ResizeAxis& axis,
               ResizeTaps& taps);

}  // namespace penstock
