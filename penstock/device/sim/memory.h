#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "penstock/device/cpu/host_bytes.h"
#include "penstock/device/device.h"

namespace penstock {

/// The memory of a simulated device: poisoned host memory up to a limit.
/// Not thread-safe.
class SimMemory {
 public:
  SimMemory(std::string device, std::size_t limit)
      : device_(std::move(device)), limit_(limit) {}

  /// Throws shortage() beyond the limit.
  std::byte* take(std::size_t bytes);
  void give_back(std::byte* data);
  DeviceMemory state() const { return {limit_ - used_, limit_}; }
  /// The bytes from `address` to the end of the allocation that holds it;
  /// nullopt when it is no memory of the device.
  std::optional<std::size_t> room_at(const std::byte* address) const;

 private:
  struct Allocation {
    AlignedBytes bytes;
    std::size_t size;
  };
  std::string device_;
  std::size_t limit_;
  std::size_t used_ = 0;
  std::map<const std::byte*, Allocation> allocations_;
};

}  // namespace penstock
