#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/// Takes a block of 64 bytes into the state of eight words (FIPS 180-4, 6.2.2).
void sha256_block(std::uint32_t* state, const std::byte* block);

/// The same by the instructions that x86 has for it, six times as fast; null on
/// a processor without them.
using Sha256Block = void (*)(std::uint32_t*, const std::byte*);
Sha256Block sha256_block_by_instructions();

}  // namespace penstock
