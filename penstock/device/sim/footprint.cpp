#include "penstock/device/sim/footprint.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/device/device.h"

namespace penstock {
namespace {

/// Rows of a gather that are in one piece of its table.
struct RowsRead {
  std::size_t least, most, count;
  std::uint64_t shift;
};

std::vector<RowsRead> rows_read(const Gather& gather) {
  std::vector<RowsRead> found;
  for (std::size_t p = 0; p <= gather.pieces.size(); ++p) {
    std::int64_t begin = p == 0 ? 0 : gather.pieces[p - 1].first;
    std::int64_t end = p < gather.pieces.size()
                           ? gather.pieces[p].first
                           : std::numeric_limits<std::int64_t>::max();
    std::int64_t least = end, most = -1, count = 0;
    for (std::int64_t row : gather.rows) {
      if (row < begin || row >= end) continue;
      least = std::min(least, row);
      most = std::max(most, row);
      ++count;
    }
    if (count > 0)
      found.push_back({static_cast<std::size_t>(least),
                       static_cast<std::size_t>(most),
                       static_cast<std::size_t>(count),
                       p == 0 ? 0 : gather.pieces[p - 1].shift});
  }
  return found;
}

void write(Footprint& footprint, const std::byte* out, std::size_t bytes) {
  if (bytes == 0) return;
  footprint.written.emplace_back(out, bytes);
  footprint.bytes_written += bytes;
}

Footprint footprint_of(const Gather& gather) {
  PENSTOCK_ASSERT(gather.rows.empty() || std::ranges::min(gather.rows) >= -1,
                  "a gather names a row below -1");
  const std::vector<RowsRead> read = rows_read(gather);
  Footprint footprint;
  for (const GatherField& field : gather.fields) {
    if (field.bytes == 0) continue;
    PENSTOCK_ASSERT(field.bytes <= field.row_stride,
                    "a field of a gather extends beyond its row");
    write(footprint, field.out, field.bytes * gather.rows.size());
    for (const RowsRead& rows : read) {
      auto* first = reinterpret_cast<const std::byte*>(
          reinterpret_cast<std::uintptr_t>(field.table) +
          rows.least * field.row_stride + rows.shift);
      footprint.read.push_back(
          {{first, (rows.most - rows.least) * field.row_stride + field.bytes},
           rows.count * field.bytes});
    }
  }
  return footprint;
}

Footprint footprint_of(const CastNormalize& cast) {
  check(cast);
  Footprint footprint;
  const std::size_t count = static_cast<std::size_t>(cast.rows) *
                            static_cast<std::size_t>(cast.pixels) *
                            cast.channels.size();
  if (count == 0) return footprint;
  footprint.read.push_back({{cast.in, count}, count});
  write(footprint, cast.out, count * size_of(cast.to));
  return footprint;
}

Footprint footprint_of(const CropFlip& crop) {
  check(crop);
  Footprint footprint;
  const std::size_t bytes = static_cast<std::size_t>(crop.height) *
                            static_cast<std::size_t>(crop.width) *
                            static_cast<std::size_t>(crop.channels);
  for (const CropWindow& window : crop.windows) {
    if (window.image == nullptr || bytes == 0) continue;
    footprint.read.push_back(
        {{window.image, static_cast<std::size_t>(window.height) *
                            static_cast<std::size_t>(window.width) *
                            static_cast<std::size_t>(crop.channels)},
         bytes});
  }
  write(footprint, crop.out, bytes * crop.windows.size());
  return footprint;
}

/// The pixels of an axis that taps use.
std::size_t used(const Resize& resize, const ResizeAxisTaps& axis,
                 std::int32_t pixels) {
  const std::int32_t* first = resize.taps.data() + axis.at;
  std::int32_t begin = first[0], end = 0;
  for (std::int32_t p = 0; p < pixels; ++p) {
    begin = std::min(begin, first[p]);
    end = std::max(end, first[p] + first[pixels + p]);
  }
  return static_cast<std::size_t>(end - begin);
}

Footprint footprint_of(const Resize& resize) {
  check(resize);
  Footprint footprint;
  const auto channels = static_cast<std::size_t>(resize.channels);
  const std::size_t bytes = static_cast<std::size_t>(resize.height) *
                            static_cast<std::size_t>(resize.width) * channels *
                            resize.number_bytes;
  if (bytes == 0) return footprint;
  for (const ResizeWindow& window : resize.windows) {
    write(footprint, resize.out + static_cast<std::size_t>(window.row) * bytes,
          bytes);
    if (window.zeros()) continue;
    if (!window.file.empty()) {
      footprint.read.push_back({window.file, window.file.size(), true});
      continue;
    }
    footprint.read.push_back(
        {{window.image, window.image_bytes(resize.channels)},
         used(resize, window.columns, resize.width) *
             used(resize, window.rows, resize.height) * channels});
  }
  return footprint;
}

// From the first row to the last, of which boxes are a part.
Footprint footprint_of(const Mask& mask) {
  check(mask);
  Footprint footprint{.keeps_the_rest = true};
  std::size_t marked = 0;
  std::int64_t begin = mask.rows, end = 0;
  for (const MaskBox& box : mask.boxes) {
    begin = std::min(begin, box.row);
    end = std::max(end, box.row + 1);
    marked += static_cast<std::size_t>(box.height) *
              static_cast<std::size_t>(box.width);
  }
  if (marked == 0) return footprint;
  const std::size_t row_bytes = static_cast<std::size_t>(mask.height) *
                                static_cast<std::size_t>(mask.width) *
                                mask.element_bytes;
  footprint.written.emplace_back(
      mask.out + static_cast<std::size_t>(begin) * row_bytes,
      static_cast<std::size_t>(end - begin) * row_bytes);
  footprint.bytes_written = marked * mask.element_bytes;
  return footprint;
}

Footprint footprint_of(const Move& move) {
  check(move);
  Footprint footprint;
  const std::size_t bytes = static_cast<std::size_t>(move.height) *
                            static_cast<std::size_t>(move.width) *
                            sizeof(float);
  if (bytes == 0) return footprint;
  for (const MovedRow& row : move.moved) {
    footprint.read.push_back({{row.from, bytes}, bytes});
    write(footprint, move.out + static_cast<std::size_t>(row.row) * bytes,
          bytes);
  }
  return footprint;
}

Footprint footprint_of(const HostKernel& kernel) {
  Footprint footprint;
  for (std::span<const std::byte> read : kernel.read)
    footprint.read.push_back({read, read.size()});
  for (std::span<const std::byte> written : kernel.written)
    write(footprint, written.data(), written.size());
  return footprint;
}

template <class T>
std::vector<T> own(std::span<const T> of) {
  return {of.begin(), of.end()};
}

std::function<void()> effect(const Gather& gather) {
  return [fields = own(gather.fields), rows = own(gather.rows),
          pieces = own(gather.pieces)] {
    run_on_host(Gather{fields, rows, pieces});
  };
}
std::function<void()> effect(CastNormalize cast) {
  return [cast, channels = own(cast.channels)]() mutable {
    cast.channels = channels;
    run_on_host(cast);
  };
}
std::function<void()> effect(CropFlip crop) {
  return [crop, windows = own(crop.windows)]() mutable {
    crop.windows = windows;
    run_on_host(crop);
  };
}
std::function<void()> effect(Resize resize) {
  return [resize, numbers = own(resize.numbers), taps = own(resize.taps),
          windows = own(resize.windows)]() mutable {
    resize.numbers = numbers;
    resize.taps = taps;
    resize.windows = windows;
    run_on_host(resize);
  };
}
std::function<void()> effect(Mask mask) {
  return [mask, boxes = own(mask.boxes)]() mutable {
    mask.boxes = boxes;
    run_on_host(mask);
  };
}
std::function<void()> effect(Move move) {
  return [move, moved = own(move.moved)]() mutable {
    move.moved = moved;
    run_on_host(move);
  };
}
std::function<void()> effect(HostKernel kernel) {
  return std::move(kernel.run);
}

}  // namespace

Footprint footprint_of(const DeviceOperation& operation) {
  return std::visit([](const auto& each) { return footprint_of(each); },
                    operation);
}

std::function<void()> effect_of(DeviceOperation operation) {
  return std::visit([](auto&& each) { return effect(std::move(each)); },
                    std::move(operation));
}

}  // namespace penstock
