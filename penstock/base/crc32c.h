#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock {

/// CRC-32C (Castagnoli), as iSCSI has it (RFC 3720).
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace penstock
