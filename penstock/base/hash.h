#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

/// A 64-bit hash of bytes under a key: for splits and change detection, not
/// against an adversary. The same on every machine.
std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t key = 0);
std::uint64_t hash64(std::string_view text, std::uint64_t key = 0);

/// SHA-256 (FIPS 180-4), computed incrementally.
class Sha256 {
 public:
  Sha256();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// 64 lower-case hex digits. Ends the hash: feed nothing afterwards.
  std::string hex();

 private:
  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_;
  std::array<std::byte, 64> pending_;
  std::uint64_t size_ = 0;
};

}  // namespace penstock
