#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace penstock::postgres {

inline std::uint16_t swapped(std::uint16_t x) { return __builtin_bswap16(x); }
inline std::uint32_t swapped(std::uint32_t x) { return __builtin_bswap32(x); }
inline std::uint64_t swapped(std::uint64_t x) { return __builtin_bswap64(x); }

template <std::size_t size>
struct BitsOf;
template <>
struct BitsOf<2> {
  using type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using type = std::uint64_t;
};

/// The number whose bytes begin at `bytes`, most significant first, as
/// PostgreSQL sends all numbers. This machine is little-endian.
template <class T>
T load_big(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  typename BitsOf<sizeof(T)>::type bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return std::bit_cast<T>(swapped(bits));
}

/// Adds the bytes of a number, most significant first.
template <class T>
void append_big(std::string& to, T value) {
  auto bits = swapped(std::bit_cast<typename BitsOf<sizeof(T)>::type>(value));
  char bytes[sizeof(bits)];
  std::memcpy(bytes, &bits, sizeof(bits));
  to.append(bytes, sizeof(bytes));
}

}  // namespace penstock::postgres
