#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
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

/// The taps of an axis of `pixels` pixels, of a window of so many; of all
/// weights that there may be. Appends them.
inline ResizeAxisTaps drawn_taps(Random& random, std::int32_t pixels,
                                 std::int32_t room,
                                 std::vector<std::int32_t>& taps) {
  const auto below = [&](std::int32_t end) {
    return static_cast<std::int32_t>(
        random.below(static_cast<std::uint64_t>(end)));
  };
  const ResizeAxisTaps axis{.at = taps.size(), .most = 1 + below(7)};
  std::vector<std::int32_t> first, count, weights;
  for (std::int32_t p = 0; p < pixels; ++p) {
    count.push_back(1 + below(std::min(axis.most, room)));
    first.push_back(below(room - count.back() + 1));
    constexpr std::int32_t kOne = 1 << kResizeBits;
    for (std::int32_t t = 0; t < axis.most; ++t)
      weights.push_back((below(3 * kOne) - kOne) / count.back());
  }
  for (const auto* part : {&first, &count, &weights})
    taps.insert(taps.end(), part->begin(), part->end());
  return axis;
}

/// Windows of images of many sizes, some of which are not images, to rows in
/// any order.
inline DrawnOperation drawn_resize(Random& random) {
  const auto below = [&](std::int32_t end) {
    return static_cast<std::int32_t>(
        random.below(static_cast<std::uint64_t>(end)));
  };
  Resize resize{.height = 1 + below(50),
                .width = 1 + below(50),
                .channels = 1 + below(4),
                .channels_first = below(2) == 0,
                .number_bytes = std::size_t{1} << random.below(4)};
  const auto channels = static_cast<std::size_t>(resize.channels);
  std::vector<std::byte> numbers(channels * 256 * resize.number_bytes);
  for (std::byte& byte : numbers) byte = static_cast<std::byte>(random.next());
  std::vector<std::int32_t> taps;
  std::vector<ResizeWindow> windows;
  std::vector<std::size_t> images;
  std::size_t end = 0;
  const auto rows = static_cast<std::int64_t>(random.below(7));
  for (std::int64_t row = rows; row-- > 0;) {
    ResizeWindow window{.height = 1 + below(90),
                        .width = 1 + below(90),
                        .row = row,
                        .columns_first = below(2) == 0,
                        .flip = below(2) == 0};
    window.top = below(window.height);
    window.left = below(window.width);
    window.columns =
        drawn_taps(random, resize.width, window.width - window.left, taps);
    window.rows =
        drawn_taps(random, resize.height, window.height - window.top, taps);
    windows.push_back(window);
    images.push_back(end);
    end += static_cast<std::size_t>(window.height) *
           static_cast<std::size_t>(window.width) * channels;
  }
  const std::int32_t none = below(7);
  return {end,
          static_cast<std::size_t>(rows) *
              static_cast<std::size_t>(resize.height) *
              static_cast<std::size_t>(resize.width) * channels *
              resize.number_bytes,
          [=](const std::byte* in, std::byte* out, const auto& run) {
            std::vector<ResizeWindow> placed = windows;
            for (std::size_t w = 0; w < placed.size(); ++w)
              if (std::cmp_not_equal(w, none)) placed[w].image = in + images[w];
            Resize with = resize;
            with.out = out;
            with.numbers = numbers;
            with.taps = taps;
            with.windows = placed;
            run(with);
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

/// Rows of a batch, some of which are not written, moved by as much as their
/// width and less.
inline DrawnOperation drawn_move(Random& random) {
  const auto below = [&](std::int32_t end) {
    return static_cast<std::int32_t>(
        random.below(static_cast<std::uint64_t>(end)));
  };
  const std::int32_t height = 1 + below(6), width = 1 + below(900);
  const auto rows = static_cast<std::size_t>(1 + below(9));
  const bool wraps = below(2) == 0;
  const std::size_t bytes = static_cast<std::size_t>(height) *
                            static_cast<std::size_t>(width) * sizeof(float);
  std::vector<MovedRow> moved;
  for (std::size_t row = rows; row-- > 0;) {
    if (below(5) == 0) continue;
    moved.push_back({.row = static_cast<std::int64_t>(row),
                     .by = below(2 * width + 1) - width});
    if (below(3) > 0)
      moved.back().factor = static_cast<float>(3 * random.uniform());
  }
  return {rows * bytes, rows * bytes,
          [=](const std::byte* in, std::byte* out, const auto& run) {
            std::vector<MovedRow> placed = moved;
            for (std::size_t at = 0; at < placed.size(); ++at)
              placed[at].from = in + at * bytes;
            run(Move{.out = out,
                     .rows = static_cast<std::int64_t>(rows),
                     .height = height,
                     .width = width,
                     .wraps = wraps,
                     .moved = placed});
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
