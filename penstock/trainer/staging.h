#pragma once

#include <cstddef>
#include <vector>

#include "penstock/device/device.h"

namespace penstock {

/// Where the host writes what is then copied to a device: a few pieces of
/// pinned memory, used in turn, so that nobody waits for a copy but who comes
/// round to its piece again before it is done.
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
