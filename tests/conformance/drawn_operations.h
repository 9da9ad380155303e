#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/device/device.h"

/// Operations of every kind, drawn at random, for all who do them.
namespace penstock::conformance {

/// An operation on memory that is not there yet, of the device or of the host.
struct DrawnOperation {
  std::size_t in_bytes = 0, out_bytes = 0;
  /// On these memories; calls `run` while what the operation shows lives.
  std::function<void(const std::byte* in, std::byte* out,
                     const std::function<void(const DeviceOperation&)>& run)>
      with;
};

inline DrawnOperation drawn_cast(Random& random) {
  const std::size_t pixels = 1 + random.below(3000);
  const std::size_t rows = random.below(9);
  std::vector<Normalization> channels(1 + random.below(5));
  for (Normalization& channel : channels)
    channel = {255 * random.uniform(), 0.1 + 100 * random.uniform()};
  const Dtype to = std::array{Dtype::float32, Dtype::float16,
                              Dtype::bfloat16}[random.below(3)];
  const bool channels_first = random.below(2) == 0;
  const std::size_t count = rows * pixels * channels.size();
  return {count, count * size_of(to),
          [=](const std::byte* in, std::byte* out, const auto& run) {
            run(CastNormalize{.in = in,
                              .out = out,
                              .to = to,
                              .rows = static_cast<std::int64_t>(rows),
                              .pixels = static_cast<std::int64_t>(pixels),
                              .channels = channels,
                              .channels_first = channels_first});
          }};
}

/// Windows of images of many sizes, of which some are the whole image, and some
/// none.
inline DrawnOperation drawn_crop(Random& random) {
  const auto below = [&](std::int32_t end) {
    return static_cast<std::int32_t>(
        random.below(static_cast<std::uint64_t>(end)));
  };
  const std::int32_t height = 1 + below(60), width = 1 + below(60);
  const std::int32_t channels = 1 + below(4);
  const auto size = [&](std::int32_t h, std::int32_t w) {
    return static_cast<std::size_t>(h) * static_cast<std::size_t>(w) *
           static_cast<std::size_t>(channels);
  };
  std::vector<CropWindow> windows;
  std::vector<std::optional<std::size_t>> images;
  std::size_t end = 0;
  for (std::size_t w = random.below(7); w > 0; --w) {
    CropWindow window{.height = height + below(20),
                      .width = width + below(20),
                      .flip = below(2) == 0};
    window.top = below(window.height - height + 1);
    window.left = below(window.width - width + 1);
    windows.push_back(window);
    images.push_back(end);
    end += size(window.height, window.width);
    if (below(5) == 0) images.back().reset();
  }
  return {end, windows.size() * size(height, width),
          [=](const std::byte* in, std::byte* out, const auto& run) {
            std::vector<CropWindow> placed = windows;
            for (std::size_t w = 0; w < placed.size(); ++w)
              placed[w].image = images[w] ? in + *images[w] : nullptr;
            run(CropFlip{.out = out,
                         .height = height,
                         .width = width,
                         .channels = channels,
                         .windows = placed});
          }};
}

inline DrawnOperation drawn_mask(Random& random) {
  const auto below = [&](std::int32_t end) {
    return static_cast<std::int32_t>(
        random.below(static_cast<std::uint64_t>(end)));
  };
  const std::int64_t rows = 1 + below(5);
  const std::int32_t height = 1 + below(80), width = 1 + below(80);
  const std::size_t element = std::size_t{1} << random.below(4);
  const std::uint64_t value = random.next();
  std::vector<MaskBox> boxes(random.below(12));
  for (MaskBox& box : boxes) {
    box = {.row = below(static_cast<std::int32_t>(rows)),
           .top = below(height),
           .left = below(width)};
    box.height = below(height - box.top + 1);
    box.width = below(width - box.left + 1);
  }
  return {0,
          static_cast<std::size_t>(rows) * static_cast<std::size_t>(height) *
              static_cast<std::size_t>(width) * element,
          [=](const std::byte*, std::byte* out, const auto& run) {
            run(Mask{.out = out,
                     .rows = rows,
                     .height = height,
                     .width = width,
                     .element_bytes = element,
                     .value = value,
                     .boxes = boxes});
          }};
}

/// The bytes that an operation leaves on the host where `before` was.
inline std::vector<std::byte> right_bytes(const DrawnOperation& drawn,
                                          const std::vector<std::byte>& in,
                                          std::vector<std::byte> before) {
  drawn.with(in.data(), before.data(),
             [](const DeviceOperation& operation) { run_on_host(operation); });
  return before;
}

}  // namespace penstock::conformance
