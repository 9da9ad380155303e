#include <algorithm>
#include <cstring>

#include "penstock/sources/hdf5/filters/steps.h"

namespace penstock::hdf5 {
namespace {

/// H5_checksum_fletcher32: words of two bytes, big-endian; an odd last byte is
/// the upper half of a word.
std::uint32_t fletcher32(In in) {
  std::uint32_t sum1 = 0, sum2 = 0;
  std::size_t at = 0;
  const std::size_t words = in.size() / 2;
  for (std::size_t word = 0; word < words;) {
    // 360 words do not overflow 32 bits.
    const std::size_t end = std::min(words, word + 360);
    for (; word < end; ++word, at += 2) {
      sum1 += static_cast<std::uint32_t>(big_endian(in.data() + at, 2));
      sum2 += sum1;
    }
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
  }
  if (in.size() % 2 != 0) {
    sum1 += std::to_integer<std::uint32_t>(in[at]) << 8;
    sum2 += sum1;
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
  }
  sum1 = (sum1 & 0xffff) + (sum1 >> 16);
  sum2 = (sum2 & 0xffff) + (sum2 >> 16);
  return sum2 << 16 | sum1;
}

}  // namespace

// The chunk is followed by its checksum, 4 bytes in little-endian order. What
// was summed up are the bytes as this filter saw them, after the filters before
// it.
std::string undo_fletcher32(In in, Bytes& out) {
  if (in.size() < 4) return "the chunk ends before its checksum";
  const In values = in.first(in.size() - 4);
  std::uint32_t stored = 0;
  std::memcpy(&stored, in.data() + values.size(), sizeof(stored));
  const std::uint32_t found = fletcher32(values);
  // Before 1.6.3 libhdf5 wrote the bytes of each half in the machine's order.
  const std::uint32_t old =
      (found & 0x00ff00ff) << 8 | (found >> 8 & 0x00ff00ff);
  if (found != stored && old != stored)
    return "the bytes of the chunk do not match its checksum (fletcher32)";
  out.resize(values.size());
  if (!values.empty())
    std::memcpy(out.mutable_data<std::byte>(), values.data(), values.size());
  return {};
}

}  // namespace penstock::hdf5
