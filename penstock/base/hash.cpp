#include "penstock/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "penstock/base/random.h"
#include "penstock/base/sha256_block.h"

namespace penstock {
namespace {

template <class Word>
std::uint64_t load(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

std::uint64_t load64(const std::byte* from) {
  return load<std::uint64_t>(from);
}

/// What is left of less than 16 bytes, and zeros: loads that overlap, since a
/// copy of so many bytes is a call that takes as long as all the rest.
struct Rest {
  std::uint64_t low = 0, high = 0;

  Rest(const std::byte* from, std::size_t size) {
    if (size > 8) {
      low = load64(from);
      high = load64(from + size - 8) >> (8 * (16 - size));
    } else if (size >= 4) {
      low = load<std::uint32_t>(from) | load<std::uint32_t>(from + size - 4)
                                            << (8 * (size - 4));
    } else if (size > 0) {
      for (const std::size_t at : {std::size_t{0}, size / 2, size - 1})
        low |= std::to_integer<std::uint64_t>(from[at]) << (8 * at);
    }
  }
};

// Both halves of the 128-bit product: two words are mixed in one multiply.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^
         static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t kOdd1 = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t kOdd2 = 0xd1b54a32d192ed03u;

}  // namespace

// In the manner of wyhash: each step multiplies two words of the input, one of
// them mixed with the state, and folds the product. The length goes in at the
// start, so that bytes of the rest that were filled up with zeros cannot be
// mistaken for bytes that are there. Not for hostile input without a secret
// key. The values are part of formats on disk and must not change.
std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t key) {
  std::uint64_t state = mix64(key + kOdd1) + kOdd1 * bytes.size();
  std::size_t at = 0;
  for (; at + 16 <= bytes.size(); at += 16)
    state = fold(load64(&bytes[at]) ^ kOdd2, load64(&bytes[at + 8]) ^ state);
  const Rest rest(bytes.data() + at, bytes.size() - at);
  state = fold(rest.low ^ kOdd2, rest.high ^ state ^ kOdd1);
  return mix64(state);
}

std::uint64_t hash64(std::string_view text, std::uint64_t key) {
  return hash64(std::as_bytes(std::span(text)), key);
}

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::compress(const std::byte* block) {
  static const Sha256Block by_instructions = sha256_block_by_instructions();
  (by_instructions ? by_instructions : sha256_block)(state_.data(), block);
}

void Sha256::add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;  // whose data may be null
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

// FIPS 180-4, section 5.1.1: a 1 bit, zeros up to 56 bytes of a block, and the
// length in bits as 64 bits, big-endian. With 56 bytes or more pending, the
// zeros fill a second block.
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
