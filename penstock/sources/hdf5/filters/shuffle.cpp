#include <algorithm>
#include <cstring>

#include "penstock/sources/hdf5/filters/filters.h"
#include "penstock/sources/hdf5/filters/steps.h"

namespace penstock::hdf5 {
namespace {

// With a width that the compiler knows it writes whole values, several at once.
// Bytes of one value are `all` apart.
template <std::size_t kWidth>
void interleave(const std::byte* in, std::size_t all, std::size_t values,
                std::byte* out) {
  for (std::size_t at = 0; at < values; ++at)
    for (std::size_t b = 0; b < kWidth; ++b)
      out[at * kWidth + b] = in[b * all + at];
}

void interleave(std::size_t width, const std::byte* in, std::size_t values,
                std::byte* out) {
  // Blocks that stay in the first cache.
  constexpr std::size_t kBlock = 1024;
  for (std::size_t from = 0; from < values; from += kBlock) {
    const std::size_t to = std::min(values, from + kBlock);
    for (std::size_t b = 0; b < width; ++b)
      for (std::size_t at = from; at < to; ++at)
        out[at * width + b] = in[b * values + at];
  }
}

}  // namespace

void take_together(In chunk, std::size_t apart, std::size_t first,
                   std::size_t values, std::byte* out) {
  const std::size_t all = chunk.size() / apart;
  const std::byte* in = chunk.data() + first;
  if (apart == 2)
    interleave<2>(in, all, values, out);
  else if (apart == 4)
    interleave<4>(in, all, values, out);
  else
    interleave<8>(in, all, values, out);
}

// Shuffle (filter 2) stores the first bytes of all values, then all second
// bytes, and so on: byte b of value v is at b * values + v. Undoing it is the
// transpose of a matrix of `width` rows.
void undo_shuffle(In in, const Filter& filter, std::byte* to) {
  const std::size_t width = filter.values.empty() ? 0 : filter.values[0];
  if (width <= 1 || in.size() < width) {
    if (!in.empty()) std::memcpy(to, in.data(), in.size());
    return;
  }
  const std::size_t values = in.size() / width;
  if (width == 2 || width == 4 || width == 8)
    take_together(in.first(values * width), width, 0, values, to);
  else
    interleave(width, in.data(), values, to);
  // Bytes behind the last whole value were not moved.
  const std::size_t moved = values * width;
  std::memcpy(to + moved, in.data() + moved, in.size() - moved);
}

}  // namespace penstock::hdf5
