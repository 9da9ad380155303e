#pragma once

#include <cstddef>
#include <vector>

#include "penstock/device/device.h"

namespace penstock {

/// Staging memory for copies to a device: a few pinned buffers, used in turn,
/// so that only a caller that comes round to its buffer too early waits for a
/// copy.
///
/// One thread. Copies that were queued must be done before it is destroyed.
class Staging {
 public:
  Staging(Device& device, std::size_t pieces)
      : device_(device), pieces_(pieces) {}

  /// Memory to write to, until send().
  std::byte* room(std::size_t bytes);
  /// Queues the copy of what room() gave last to `to`, on the device.
  void send(std::byte* to, Stream& stream);

 private:
  struct Piece {
    Buffer memory;  // of the largest that was wanted
    std::size_t bytes = 0;
    Event sent;
  };

  Device& device_;
  std::vector<Piece> pieces_;
  std::size_t at_ = 0;
};

}  // namespace penstock
