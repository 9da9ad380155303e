#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "penstock/device/device.h"

namespace penstock::cuda {

/// Holds row indices from the call of a gather until the device has read them:
/// a range of host memory, used from its start to its end and over again. One
/// thread. The memory is owned elsewhere and outlives it.
class RowRing {
 public:
  explicit RowRing(std::span<std::int64_t> memory) : memory_(memory) {}
  /// Waits until all is read.
  ~RowRing();
  RowRing(const RowRing&) = delete;
  RowRing& operator=(const RowRing&) = delete;

  /// Copies the indices; waits for readers of what they would overwrite. At
  /// most as many as the ring holds. An index below -1 is an internal error.
  const std::int64_t* put(std::span<const std::int64_t> rows);
  /// What put() gave last is read until `event` passes.
  void read_until(Event event);

 private:
  struct Piece {
    std::size_t begin, end;
    Event read;
  };
  bool taken(std::size_t begin, std::size_t end) const;

  std::span<std::int64_t> memory_;
  std::size_t next_ = 0;
  std::deque<Piece> pieces_;  // the oldest first
};

}  // namespace penstock::cuda
