#include "penstock/device/cpu/host_bytes.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "penstock/base/host_limits.h"
#include "penstock/device/shortage.h"

namespace penstock {

// Large memory lies in huge pages: a gather of random rows of 300 bytes and of
// 1 KB took 10 and 23 % less time with them.
AlignedBytes allocate_host(std::size_t bytes, std::string_view device) {
  // Asked first, because Linux promises memory that it does not have.
  if (bytes >= kHugeFrom) {
    DeviceMemory memory = host_memory();
    if (bytes > std::min<std::size_t>(memory.total, PTRDIFF_MAX))
      throw shortage(device, bytes, memory);
  }
  AlignedBytes data = allocate_aligned(bytes);
  if (data == nullptr) throw shortage(device, bytes, host_memory());
  return data;
}

DeviceMemory host_memory() {
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  HostLimits limits = read_host_limits();
  return {.free = limits.memory_free.value_or(kNoLimit),
          .total = limits.memory.value_or(kNoLimit)};
}

Buffer host_buffer(std::size_t bytes, std::string_view device) {
  AlignedBytes data = allocate_host(bytes, device);
  return Buffer(data.release(), bytes, MemoryKind::cpu,
                [](std::byte* freed, std::size_t) { FreeAligned()(freed); });
}

}  // namespace penstock
