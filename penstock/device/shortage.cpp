#include "penstock/device/shortage.h"

#include <cstdio>
#include <string>

namespace penstock {
namespace {

// "1.5 GiB (1610612736 bytes)": the round figure for people, the exact one for
// comparing two of them.
std::string shown(std::size_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  std::string exact = std::to_string(bytes) + " bytes";
  if (bytes < 1024) return exact;
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char round[40];
  std::snprintf(round, sizeof(round), "%.4g %s", value, kUnits[unit]);
  return round + (" (" + exact + ")");
}

}  // namespace

Error shortage(std::string_view device, std::size_t asked,
               DeviceMemory memory) {
  return Error(ErrorKind::out_of_memory,
               {.code = "device.out_of_memory",
                .what = "cannot allocate memory",
                .where = "device '" + std::string(device) + "'",
                .why = "requested " + shown(asked) + ", free: " +
                       shown(memory.free) + " of " + shown(memory.total),
                .next = "use a smaller batch, less prefetch, or a cache tier "
                        "that is not on this device"});
}

}  // namespace penstock
