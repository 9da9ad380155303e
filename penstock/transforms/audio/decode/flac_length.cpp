#include <algorithm>
#include <array>
#include <optional>

#include "penstock/transforms/audio/decode/sound_length.h"

// A frame of FLAC begins with 14 bits of sync, a 0 and the kind of its number;
// four bits each of block size and rate, of channels; three of the size of
// samples, and a 0. Its number follows, coded as UTF-8 codes characters (of a
// frame, or of its first sample), then what the bits left open, and a CRC-8. It
// ends with a CRC-16 of all its bytes.

namespace penstock {
namespace {

std::uint8_t crc8(std::uint8_t crc, std::uint8_t byte) {
  crc ^= byte;
  for (int bit = 0; bit < 8; ++bit)
    crc = static_cast<std::uint8_t>((crc & 0x80) != 0 ? crc << 1 ^ 0x07
                                                      : crc << 1);
  return crc;
}

std::uint16_t crc16(std::uint16_t crc, std::uint8_t byte) {
  static constexpr auto kTable = [] {
    std::array<std::uint16_t, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
      auto one = static_cast<std::uint16_t>(i << 8);
      for (int bit = 0; bit < 8; ++bit)
        one = static_cast<std::uint16_t>((one & 0x8000) != 0 ? one << 1 ^ 0x8005
                                                             : one << 1);
      table[i] = one;
    }
    return table;
  }();
  return static_cast<std::uint16_t>(crc << 8 ^ kTable[crc >> 8 ^ byte]);
}

/// The number of the sample behind the frame that begins at `at`; nothing where
/// no header of a frame begins there.
/// RFC 9639, section 9.1. The codes of the block size are 1: 192; 2 to 5: 576
/// times 1, 2, 4, 8; 6 and 7: a number of 8 or 16 bits follows, less 1; 8 to
/// 15: 256 times 1 to 128. Rates 12 to 14 put one or two bytes more into the
/// header. The CRC-8 of a header with its own CRC at the end is 0, and so is
/// the CRC-16 of a whole frame.
std::optional<std::int64_t> end_of_frame(SoundBytes& file, std::int64_t at,
                                         std::int64_t block) {
  if (file.byte(at) != 0xff || (file.byte(at + 1) & 0xfe) != 0xf8)
    return std::nullopt;
  const bool of_samples = (file.byte(at + 1) & 1) != 0;
  const unsigned size = file.byte(at + 2) >> 4;
  const unsigned rate = file.byte(at + 2) & 15;
  std::int64_t next = at + 4;
  const unsigned first = file.byte(next++);
  unsigned more = 0;  // bytes of the number
  while (more < 7 && (first << more & 0x80) != 0) ++more;
  if (more == 1 || size == 0 || rate == 15) return std::nullopt;
  std::int64_t number = more == 0 ? first : first & (0x7fU >> more);
  for (; more > 1; --more) number = number << 6 | (file.byte(next++) & 0x3f);
  std::int64_t samples = 0;
  if (size == 1)
    samples = 192;
  else if (size <= 5)
    samples = 576 << (size - 2);
  else if (size >= 8)
    samples = 256 << (size - 8);
  else
    samples = static_cast<std::int64_t>(file.big(next, size == 6 ? 1 : 2)) + 1;
  next += size == 6 ? 1 : size == 7 ? 2 : 0;
  next += rate == 12 ? 1 : rate >= 13 ? 2 : 0;
  std::uint8_t crc = 0;
  for (std::int64_t i = at; i <= next; ++i) crc = crc8(crc, file.byte(i));
  if (crc != 0) return std::nullopt;
  return (of_samples ? number : number * block) + samples;
}

bool is_whole_frame(SoundBytes& file, std::int64_t at) {
  std::uint16_t crc = 0;
  for (; at < file.size(); ++at) crc = crc16(crc, file.byte(at));
  return crc == 0;
}

}  // namespace

// A writer that could not go back leaves the length in STREAMINFO (RFC 9639,
// section 8.2) at 0. The last frame says it: its number and its samples. It is
// looked for from the end backwards, and it must reach exactly to the end, by a
// CRC-16 that is right by chance once in 65,536.
std::string complete_flac(SoundBytes& file, std::int64_t at) {
  // The length is the last 36 bits of 8 bytes in STREAMINFO.
  constexpr std::int64_t kBlock = 8, kLength = 18, kHead = 42,
                         kFarthest = 1 << 22;
  constexpr std::uint64_t kLengthBits = (std::uint64_t{1} << 36) - 1;
  std::uint64_t numbers = file.big(at + kLength, 8);
  const auto block = static_cast<std::int64_t>(file.big(at + kBlock, 2));
  if ((numbers & kLengthBits) != 0 || file.size() < at + kHead) return {};
  const std::int64_t farthest = std::max(at + kHead, file.size() - kFarthest);
  int tried = 0;  // what looks like a header by its CRC-8 alone is rare
  for (std::int64_t frame = file.size() - 1; frame >= farthest && tried < 32;
       --frame) {
    const std::optional<std::int64_t> end = end_of_frame(file, frame, block);
    if (!end || (++tried, !is_whole_frame(file, frame))) continue;
    numbers |= static_cast<std::uint64_t>(*end) & kLengthBits;
    std::string shown;
    for (int bits = 56; bits >= 0; bits -= 8)
      shown += static_cast<char>(numbers >> bits & 0xff);
    file.replace(at + kLength, std::move(shown));
    return {};
  }
  return "the header does not give the number of samples, and the file does "
         "not end with a complete frame: it is cut off or damaged";
}

}  // namespace penstock
