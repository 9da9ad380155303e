#include <algorithm>
#include <cstring>
#include <vector>

#include "penstock/device/cpu/operations.h"

namespace penstock::on_host {
namespace {

/// The taps of an axis, as they stand in Resize::taps.
struct Taps {
  const std::int32_t *first, *count, *weights;
  std::size_t most;
  std::size_t begin, end;  // of the pixels that any of them uses

  Taps(const Resize& resize, const ResizeAxisTaps& axis, std::int32_t pixels)
      : first(resize.taps.data() + axis.at),
        count(first + pixels),
        weights(count + pixels),
        most(static_cast<std::size_t>(axis.most)),
        begin(
            static_cast<std::size_t>(*std::min_element(first, first + pixels))),
        end(0) {
    for (std::int32_t p = 0; p < pixels; ++p)
      end = std::max(end, static_cast<std::size_t>(first[p] + count[p]));
  }
};

constexpr std::int32_t kHalf = 1 << (kResizeBits - 1);

std::uint8_t byte_of(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kResizeBits, 0, 255));
}

/// Adds up one pixel's taps, whose bytes are `step` apart.
std::uint8_t sum_of(const std::uint8_t* from, std::size_t step,
                    const Taps& taps, std::size_t pixel) {
  const std::int32_t* weights = taps.weights + pixel * taps.most;
  std::int32_t sum = kHalf;
  for (std::int32_t t = 0; t < taps.count[pixel]; ++t, from += step)
    sum += *from * weights[t];
  return byte_of(sum);
}

/// Lines of a picture in memory, `stride` bytes apart. The first pixel, or
/// line, that taps are added up from is the one of this number.
struct Lines {
  const std::uint8_t* data;
  std::size_t stride;
  std::size_t first;
};

/// Each of `lines` lines becomes one of `width` pixels.
void along_rows(Lines in, std::size_t lines, std::size_t width,
                std::size_t channels, const Taps& columns, std::uint8_t* out) {
  for (std::size_t y = 0; y < lines; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t pixel =
          static_cast<std::size_t>(columns.first[x]) - in.first;
      const std::uint8_t* from = in.data + y * in.stride + pixel * channels;
      for (std::size_t c = 0; c < channels; ++c)
        *out++ = sum_of(from + c, channels, columns, x);
    }
}

/// Lines of `bytes` bytes become `height` such lines.
void along_columns(Lines in, std::size_t bytes, std::size_t height,
                   const Taps& rows, std::uint8_t* out) {
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t line = static_cast<std::size_t>(rows.first[y]) - in.first;
    const std::uint8_t* from = in.data + line * in.stride;
    for (std::size_t b = 0; b < bytes; ++b)
      *out++ = sum_of(from + b, in.stride, rows, y);
  }
}

// The definition of a resize on any device: the arithmetic of resize_passes.cpp
// on the taps that come with the operation, in the order of passes that the
// window names. A GPU's bytes are compared with these.
class Resizing {
 public:
  explicit Resizing(const Resize& resize)
      : resize_(resize),
        height_(static_cast<std::size_t>(resize.height)),
        width_(static_cast<std::size_t>(resize.width)),
        channels_(static_cast<std::size_t>(resize.channels)),
        made_(height_ * width_ * channels_) {}

  void run(const ResizeWindow& window) {
    std::byte* out = resize_.out + static_cast<std::size_t>(window.row) *
                                       made_.size() * resize_.number_bytes;
    if (window.zeros()) {
      std::memset(out, 0, made_.size() * resize_.number_bytes);
      return;
    }
    const std::byte* image = window.image;
    if (!window.file.empty()) {
      decoded_.resize(window.image_bytes(resize_.channels));
      resize_.decode(window.file, resize_.channels, decoded_.data());
      image = decoded_.data();
    }
    make(window, image);
    write(window.flip, out);
  }

 private:
  void make(const ResizeWindow& window, const std::byte* image) {
    const std::size_t stride =
        static_cast<std::size_t>(window.width) * channels_;
    const auto* in = reinterpret_cast<const std::uint8_t*>(image) +
                     static_cast<std::size_t>(window.top) * stride +
                     static_cast<std::size_t>(window.left) * channels_;
    const Taps columns(resize_, window.columns, resize_.width);
    const Taps rows(resize_, window.rows, resize_.height);
    if (window.columns_first) {
      const std::size_t line = (columns.end - columns.begin) * channels_;
      between_.resize(height_ * line);
      along_columns({in + columns.begin * channels_, stride, 0}, line, height_,
                    rows, between_.data());
      along_rows({between_.data(), line, columns.begin}, height_, width_,
                 channels_, columns, made_.data());
    } else {
      const std::size_t line = width_ * channels_;
      between_.resize((rows.end - rows.begin) * line);
      along_rows({in + rows.begin * stride, stride, 0}, rows.end - rows.begin,
                 width_, channels_, columns, between_.data());
      along_columns({between_.data(), line, rows.begin}, line, height_, rows,
                    made_.data());
    }
  }

  void write(bool flip, std::byte* out) const {
    const std::size_t bytes = resize_.number_bytes, pixels = height_ * width_;
    const std::uint8_t* from = made_.data();
    for (std::size_t p = 0; p < pixels; ++p) {
      const std::size_t x = p % width_;
      const std::size_t at = flip ? p - x + (width_ - 1 - x) : p;
      for (std::size_t c = 0; c < channels_; ++c)
        std::memcpy(out + bytes * (resize_.channels_first ? c * pixels + at
                                                          : at * channels_ + c),
                    resize_.numbers.data() + bytes * (c * 256 + *from++),
                    bytes);
    }
  }

  const Resize& resize_;
  const std::size_t height_, width_, channels_;
  std::vector<std::byte> decoded_;
  std::vector<std::uint8_t> between_;  // after the first pass
  std::vector<std::uint8_t> made_;
};

}  // namespace

void run(const Resize& resize) {
  check(resize);
  if (std::int64_t{resize.height} * resize.width == 0) return;
  Resizing resizing(resize);
  for (const ResizeWindow& window : resize.windows) resizing.run(window);
}

}  // namespace penstock::on_host
