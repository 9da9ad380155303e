#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "penstock/base/random.h"

// It needs what stands above.
#include <jpeglib.h>

/// JPEG files like those of photos: noise whose spectrum falls as theirs does.
/// Who includes it links libjpeg.
namespace penstock {

/// Smooth noise with a knot every `step` pixels.
class Octave {
 public:
  Octave(Random& random, int width, int height, int step)
      : step_(step), columns_(width / step + 2) {
    knots_.resize(static_cast<std::size_t>(columns_) *
                  static_cast<std::size_t>(height / step + 2));
    for (double& knot : knots_) knot = random.normal();
  }
  double at(int x, int y) const {
    const double u = smooth(x % step_), v = smooth(y % step_);
    auto knot = [&](int dx, int dy) {
      return knots_[static_cast<std::size_t>((y / step_ + dy) * columns_ +
                                             x / step_ + dx)];
    };
    const double upper = knot(0, 0) * (1 - u) + knot(1, 0) * u;
    const double lower = knot(0, 1) * (1 - u) + knot(1, 1) * u;
    return upper * (1 - v) + lower * v;
  }

 private:
  double smooth(int within) const {
    const double t = static_cast<double>(within) / step_;
    return t * t * (3 - 2 * t);
  }
  const int step_, columns_;
  std::vector<double> knots_;
};

inline std::vector<std::uint8_t> photo(Random& random, int width, int height) {
  std::vector<double> sums(static_cast<std::size_t>(width) *
                           static_cast<std::size_t>(height) * 3);
  for (int step = 1; step <= 128; step *= 2) {
    // One for the light, one for each colour.
    const double strength = 4.5 * std::pow(step, 0.6);
    for (std::size_t c = 0; c < 4; ++c) {
      const Octave octave(random, width, height, step);
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          double* pixel = sums.data() + (static_cast<std::size_t>(y) *
                                             static_cast<std::size_t>(width) +
                                         static_cast<std::size_t>(x)) *
                                            3;
          const double value = octave.at(x, y) * strength;
          if (c == 3)
            for (std::size_t of = 0; of < 3; ++of) pixel[of] += value;
          else
            pixel[c] += 0.3 * value;
        }
    }
  }
  std::vector<std::uint8_t> bytes;
  for (double sum : sums)
    bytes.push_back(
        static_cast<std::uint8_t>(std::clamp(sum + 120.0, 0.0, 255.0)));
  return bytes;
}

/// Baseline JPEG of quality 90; colours have 1 / `across` of the columns and
/// 1 / `down` of the lines, each 1 or 2.
inline std::string jpeg_file(const std::vector<std::uint8_t>& rgb, int width,
                             int height, int across = 2, int down = 2) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg.comp_info[0].h_samp_factor = across;
  jpeg.comp_info[0].v_samp_factor = down;
  jpeg_set_quality(&jpeg, 90, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    // libjpeg does not write to it.
    auto* row = const_cast<JSAMPROW>(rgb.data() +
                                     std::size_t{jpeg.next_scanline} *
                                         static_cast<std::size_t>(width) * 3);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return file;
}

inline std::string photo_file(Random& random, int width, int height) {
  return jpeg_file(photo(random, width, height), width, height);
}

}  // namespace penstock
