#include <algorithm>
#include <bit>
#include <cstring>

#include "penstock/sources/hdf5/filters/steps.h"

// Bitshuffle's header for HDF5 (bshuf_h5filter.c): values are its version
// (two), the bytes of a value, the values of a block (0: as many as fit into
// 8 KiB), and what compresses a block (0: nothing, 2: LZ4, 3: Zstandard).
// Compressed, the chunk begins with its size (8 bytes) and that of a block in
// bytes (4), big-endian; each block stands behind its size (4). The last block
// is shorter, a multiple of 8 values; what is left over is not shuffled.
namespace penstock::hdf5 {
namespace {

constexpr std::size_t kTargetBytes = 8192;
constexpr std::size_t kMultiple = 8, kLeastValues = 128;

std::size_t default_block(std::size_t width) {
  return std::max(kTargetBytes / width / kMultiple * kMultiple, kLeastValues);
}

/// The 8 x 8 bits of a word, transposed (Hacker's Delight, 7-3).
std::uint64_t transposed(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

/// A block of `values`, a multiple of 8: bit b of byte w of all of them stands
/// in row 8 w + b, of values / 8 bytes.
void untranspose(const std::byte* in, std::size_t values, std::size_t width,
                 std::byte* out) {
  const std::size_t row = values / 8;
  for (std::size_t w = 0; w < width; ++w)
    for (std::size_t at = 0; at < row; ++at) {
      std::uint64_t word = 0;
      for (std::size_t b = 0; b < 8; ++b)
        word |= std::to_integer<std::uint64_t>(in[(8 * w + b) * row + at])
                << (8 * b);
      word = transposed(word);
      for (std::size_t v = 0; v < 8; ++v)
        out[(8 * at + v) * width + w] =
            static_cast<std::byte>(word >> (8 * v) & 0xff);
    }
}

}  // namespace

std::string undo_bitshuffle(In in, const Filter& filter, std::size_t most,
                            Bytes& out) {
  if (filter.values.size() < 3 || filter.values[2] == 0)
    return "the bitshuffle filter has no element size";
  const std::size_t width = filter.values[2];
  const std::uint32_t how = filter.values.size() > 4 ? filter.values[4] : 0;
  std::size_t block = filter.values.size() > 3 ? filter.values[3] : 0;
  constexpr const char* kFault = "its bytes are not valid bitshuffle data";
  std::size_t size = in.size(), at = 0;
  if (how != 0) {
    if (in.size() < 12) return kFault;
    size = big_endian(in.data(), 8);
    block = static_cast<std::size_t>(big_endian(in.data() + 8, 4)) / width;
    at = 12;
  }
  if (block == 0) block = default_block(width);
  if (size > most || block % kMultiple != 0) return kFault;
  out.resize(size);
  auto* to = out.mutable_data<std::byte>();
  Bytes plain;
  plain.resize(std::min(block, size / width) * width);
  std::size_t left = size / width;
  while (left >= kMultiple) {
    const std::size_t values = std::min(block, left / kMultiple * kMultiple);
    const std::size_t bytes = values * width;
    const std::byte* from = nullptr;
    if (how == 0) {
      if (in.size() - at < bytes) return kFault;
      from = in.data() + at;
      at += bytes;
    } else {
      if (in.size() - at < 4) return kFault;
      const auto stored =
          static_cast<std::size_t>(big_endian(in.data() + at, 4));
      at += 4;
      if (stored > in.size() - at) return kFault;
      const std::span<std::byte> whole(plain.mutable_data<std::byte>(), bytes);
      const In piece = in.subspan(at, stored);
      if (!(how == 2 ? block_of_lz4(piece, whole)
                     : how == 3 && frame_of_zstd(piece, whole)))
        return kFault;
      from = whole.data();
      at += stored;
    }
    untranspose(from, values, width, to);
    to += bytes;
    left -= values;
  }
  const std::size_t rest = size - static_cast<std::size_t>(to - out.data());
  if (in.size() - at < rest) return kFault;
  if (rest > 0) std::memcpy(to, in.data() + at, rest);
  return {};
}

}  // namespace penstock::hdf5
