#include "penstock/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "penstock/base/random.h"

namespace penstock {
namespace {

std::uint64_t load64(const std::byte* from) {
  std::uint64_t word;
  std::memcpy(&word, from, 8);
  return word;
}

// Both halves of the 128-bit product: two words are mixed in one multiply.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^
         static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t kOdd1 = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t kOdd2 = 0xd1b54a32d192ed03u;

}  // namespace

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t key) {
  std::uint64_t state = mix64(key + kOdd1) + kOdd1 * bytes.size();
  std::size_t at = 0;
  for (; at + 16 <= bytes.size(); at += 16)
    state = fold(load64(&bytes[at]) ^ kOdd2, load64(&bytes[at + 8]) ^ state);
  std::byte rest[16] = {};
  if (at < bytes.size()) std::memcpy(rest, &bytes[at], bytes.size() - at);
  state = fold(load64(rest) ^ kOdd2, load64(rest + 8) ^ state ^ kOdd1);
  return mix64(state);
}

std::uint64_t hash64(std::string_view text, std::uint64_t key) {
  return hash64(std::as_bytes(std::span(text)), key);
}

namespace {

// The constants are the first 32 bits of the fractional parts of the cube
// roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::compress(const std::byte* block) {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    std::uint32_t word;
    std::memcpy(&word, block + 4 * i, 4);
    w[i] = __builtin_bswap32(word);
  }
  for (int i = 16; i < 64; ++i) {
    std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] +
           (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    std::uint32_t t1 = h +
                       (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                       ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    std::uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                       ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  std::uint32_t last[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += last[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  std::size_t pending = size_ % 64;
  size_ += bytes.size();
  if (pending != 0) {
    std::size_t take = std::min(64 - pending, bytes.size());
    std::memcpy(&pending_[pending], bytes.data(), take);
    bytes = bytes.subspan(take);
    if (pending + take < 64) return;
    compress(pending_.data());
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64)) compress(bytes.data());
  if (!bytes.empty()) std::memcpy(pending_.data(), bytes.data(), bytes.size());
}

void Sha256::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

std::string Sha256::hex() {
  std::uint64_t bits = __builtin_bswap64(size_ * 8);
  static constexpr std::byte kEnd[64] = {std::byte{0x80}};
  std::size_t pending = size_ % 64;
  add({kEnd, pending < 56 ? 56 - pending : 120 - pending});
  add(std::as_bytes(std::span(&bits, 1)));
  std::string text;
  for (std::uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4)
      text += "0123456789abcdef"[(word >> shift) & 15];
  return text;
}

}  // namespace penstock
