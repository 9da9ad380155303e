#include "penstock/base/sha256_block.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace penstock {
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

#if defined(__x86_64__)
namespace {

bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0 &&
         __builtin_cpu_supports("sse4.1");
}

/// The same with the instructions for it, six times as fast. These want A, B, E
/// and F in one register, C, D, G and H in another, from the highest part on.
__attribute__((target("sha,sse4.1"))) void compress_by_instructions(
    std::uint32_t* state, const std::byte* block) {
  auto load = [](const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const __m128i big_endian =
      _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i badc = _mm_shuffle_epi32(load(state), 0xB1),
                hgfe = _mm_shuffle_epi32(load(state + 4), 0x1B);
  const __m128i first = _mm_alignr_epi8(badc, hgfe, 8),
                second = _mm_blend_epi16(hgfe, badc, 0xF0);
  __m128i abef = first, cdgh = second, w[4];
  for (int i = 0; i < 4; ++i)
    w[i] = _mm_shuffle_epi8(load(block + 16 * i), big_endian);
  for (int i = 0; i < 16; ++i) {
    __m128i& now = w[i % 4];
    if (i >= 4) {
      const __m128i last = w[(i + 3) % 4];
      const __m128i sum =
          _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]),
                        _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
      now = _mm_sha256msg2_epu32(sum, last);
    }
    const __m128i added = _mm_add_epi32(now, load(kRound + 4 * i));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0E));
  }
  const __m128i feba = _mm_shuffle_epi32(_mm_add_epi32(abef, first), 0x1B),
                dchg = _mm_shuffle_epi32(_mm_add_epi32(cdgh, second), 0xB1);
  auto store = [](std::uint32_t* to, __m128i words) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), words);
  };
  store(state, _mm_blend_epi16(feba, dchg, 0xF0));
  store(state + 4, _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace

Sha256Block sha256_block_by_instructions() {
  return has_sha_instructions() ? compress_by_instructions : nullptr;
}
#else
Sha256Block sha256_block_by_instructions() { return nullptr; }
#endif

// FIPS 180-4, section 6.2.2: the message schedule, then 64 rounds. This is what
// the code by instructions is compared with.
void sha256_block(std::uint32_t* state, const std::byte* block) {
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
  std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3],
                e = state[4], f = state[5], g = state[6], h = state[7];
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
  for (std::size_t i = 0; i < 8; ++i) state[i] += last[i];
}

}  // namespace penstock
