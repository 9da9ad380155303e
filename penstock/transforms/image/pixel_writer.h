#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/transforms/image/float_numbers.h"
#include "penstock/transforms/image/image.h"

namespace penstock {

/// Writes pictures as the numbers of a tensor: what torchvision's ToTensor and
/// Normalize make of them in float32, rounded to the nearest where the tensor
/// has fewer bits. Immutable, so thread-safe.
class PixelWriter {
 public:
  explicit PixelWriter(const Image& image);

  void write(const Pixels& pixels, bool flipped, std::byte* to) const;
  /// What is written for the bytes 0 to 255, of each channel after the other.
  std::vector<std::byte> numbers() const;

 private:
  template <class Number>
  const auto& table() const;
  template <class Work>
  void of_type(Work work) const;
  template <class Number>
  void write_as(const Pixels& pixels, bool flipped, Number* to) const;
  void write_float_planes(const Pixels& pixels, bool flipped, float* to) const;

  const std::size_t channels_;
  const bool channels_last_;
  const Dtype dtype_;
  // By channel and byte. Of numbers of 16 bits their bits.
  std::array<std::array<std::uint8_t, 256>, 3> bytes_;
  std::array<std::array<std::uint16_t, 256>, 3> halves_;
  std::array<std::array<float, 256>, 3> floats_;
  std::array<FloatNumbers, 3> by_arithmetic_;
  bool arithmetic_ = false;  // floats of channels that lie apart
};

}  // namespace penstock
