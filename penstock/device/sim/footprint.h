#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "penstock/device/operation.h"

namespace penstock {

/// Which memory an operation touches.
struct Footprint {
  struct Read {
    std::span<const std::byte> bytes;  ///< from the first to the last
    std::size_t moved;                 ///< of these, as often as they are read
    bool on_host = false;  ///< in any of its memory; else pinned, or there
  };
  std::vector<Read> read;
  std::vector<std::span<const std::byte>> written;
  std::size_t bytes_written = 0;
  bool keeps_the_rest = false;  ///< not all that is in `written` is
};

/// Checks the operation, too.
Footprint footprint_of(const DeviceOperation& operation);

/// Does it later, with copies of all that the caller's spans show.
std::function<void()> effect_of(DeviceOperation operation);

}  // namespace penstock
