#include "penstock/base/crc32c.h"

#include <array>
#include <cstring>

namespace penstock {
namespace {

// CRC-32C is the reflected form of the polynomial 0x1EDC6F41, whose bits in
// reverse are 0x82F63B78. It begins with all bits set, and the result is
// inverted; the instruction of SSE 4.2 computes the same register, so both
// functions take and return it uninverted. The check value, of the nine digits
// "123456789", is 0xE3069283.
std::uint32_t by_table(std::uint32_t crc, std::span<const std::byte> bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value >> 1 ^ ((value & 1U) != 0 ? 0x82F63B78U : 0U);
      made[i] = value;
    }
    return made;
  }();
  for (std::byte byte : bytes)
    crc = crc >> 8 ^ table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFFU];
  return crc;
}

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] std::uint32_t by_instruction(
    std::uint32_t crc, std::span<const std::byte> bytes) {
  std::uint64_t wide = crc;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    wide = __builtin_ia32_crc32di(wide, word);
    bytes = bytes.subspan(sizeof(word));
  }
  crc = static_cast<std::uint32_t>(wide);
  for (std::byte byte : bytes)
    crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(byte));
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~0U, bytes);
#endif
  return ~by_table(~0U, bytes);
}

}  // namespace penstock
