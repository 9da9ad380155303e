#pragma once

#include <span>
#include <string>
#include <string_view>

#include "penstock/base/hash.h"

namespace penstock {

/// SHA-256 of these bytes, as 64 lower-case hex digits.
inline std::string sha256_of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}
inline std::string sha256_of(std::string_view text) {
  return sha256_of(std::as_bytes(std::span(text)));
}

}  // namespace penstock
