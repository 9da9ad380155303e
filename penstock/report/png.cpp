#include "penstock/report/png.h"

#include <array>
#include <string_view>

// A PNG file (ISO/IEC 15948) needs no compression: deflate (RFC 1951) also has
// blocks of up to 65,535 uncompressed bytes.
namespace penstock {
namespace {

std::uint32_t crc_of(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t n = 0; n < 256; ++n) {
      std::uint32_t c = n;
      for (int bit = 0; bit < 8; ++bit)
        c = (c & 1U) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
      made[n] = c;
    }
    return made;
  }();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (char c : bytes)
    crc = table[(crc ^ static_cast<std::uint8_t>(c)) & 0xFFU] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t adler_of(std::string_view bytes) {
  std::uint32_t a = 1, b = 0;
  for (char c : bytes) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

std::string big(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift & 0xFFU);
  return bytes;
}

// PNG: length of the data, four letters, the data, a CRC-32 of letters and
// data; numbers are big-endian.
std::string chunk(const std::string& type, const std::string& data) {
  return big(static_cast<std::uint32_t>(data.size())) + type + data +
         big(crc_of(type + data));
}

}  // namespace

// Each line begins with its filter, 0 for none. The zlib stream (RFC 1950) is
// 78 01, deflate blocks, and Adler-32; a stored block (RFC 1951, 3.2.4) is a
// byte whose first bit marks the last one, the length, its complement, and the
// bytes. IHDR: width, height, 8 bits, colour type 2 (RGB), and three zeros.
std::string png_of(const std::vector<std::uint8_t>& rgb, int width,
                   int height) {
  const auto row = static_cast<std::size_t>(width) * 3;
  std::string lines;
  for (int y = 0; y < height; ++y) {
    lines += '\0';
    lines.append(reinterpret_cast<const char*>(rgb.data()) +
                     static_cast<std::size_t>(y) * row,
                 row);
  }
  std::string packed = "\x78\x01";
  for (std::size_t at = 0; at < lines.size(); at += 65535) {
    const std::string_view block = std::string_view(lines).substr(at, 65535);
    const std::size_t size = block.size();
    packed += at + size == lines.size() ? '\1' : '\0';
    for (std::size_t number : {size, ~size})
      for (int shift : {0, 8})
        packed += static_cast<char>(number >> shift & 0xFFU);
    packed += block;
  }
  packed += big(adler_of(lines));
  return "\x89PNG\r\n\x1A\n" +
         chunk("IHDR", big(static_cast<std::uint32_t>(width)) +
                           big(static_cast<std::uint32_t>(height)) +
                           std::string("\x08\x02\0\0\0", 5)) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

}  // namespace penstock
