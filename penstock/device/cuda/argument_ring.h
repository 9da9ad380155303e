#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>

#include "penstock/device/device.h"

namespace penstock::cuda {

/// Holds what kernels read of the host's memory, row indices for example, from
/// the call of an operation until the device has read it: a range of host
/// memory, used from its start to its end and over again. One thread. The
/// memory is owned elsewhere and outlives it.
class ArgumentRing {
 public:
  explicit ArgumentRing(std::span<std::byte> memory) : memory_(memory) {}
  /// Waits until all is read.
  ~ArgumentRing();
  ArgumentRing(const ArgumentRing&) = delete;
  ArgumentRing& operator=(const ArgumentRing&) = delete;

  /// So many bytes, at a multiple of 8; waits for readers of what was there. At
  /// most as many as the ring holds.
  std::byte* take(std::size_t bytes);
  /// What take() gave last is read until `event` passes.
  void read_until(Event event);

 private:
  struct Piece {
    std::size_t begin, end;
    Event read;
  };
  bool taken(std::size_t begin, std::size_t end) const;

  std::span<std::byte> memory_;
  std::size_t next_ = 0;
  std::deque<Piece> pieces_;  // the oldest first
};

/// One with memory of its own. One thread.
struct PinnedRing {
  Buffer memory;
  std::unique_ptr<ArgumentRing> ring;

  /// To so many bytes at least; waits for who reads what is there.
  void grow(Device& device, std::size_t bytes);
};

}  // namespace penstock::cuda
