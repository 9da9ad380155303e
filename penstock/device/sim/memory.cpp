#include "penstock/device/sim/memory.h"

#include <cstring>
#include <iterator>

#include "penstock/device/shortage.h"
#include "penstock/device/sim/sim.h"

namespace penstock {

std::byte* SimMemory::take(std::size_t bytes) {
  if (bytes > limit_ - used_) throw shortage(device_, bytes, state());
  AlignedBytes data = allocate_host(bytes, device_);
  std::byte* start = data.get();
  std::memset(start, std::to_integer<int>(kPoison), bytes);
  allocations_.emplace(start, Allocation{std::move(data), bytes});
  used_ += bytes;
  return start;
}

void SimMemory::give_back(std::byte* data) {
  auto found = allocations_.find(data);
  used_ -= found->second.size;
  allocations_.erase(found);
}

// The allocation that begins last at or before the address is the only one that
// can hold it, since allocations do not overlap.
std::optional<std::size_t> SimMemory::room_at(const std::byte* address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return std::nullopt;
  const auto& [start, allocation] = *std::prev(after);
  auto offset = static_cast<std::size_t>(address - start);
  if (offset >= allocation.size) return std::nullopt;
  return allocation.size - offset;
}

}  // namespace penstock
