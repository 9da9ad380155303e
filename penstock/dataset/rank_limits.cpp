#include "penstock/dataset/rank_limits.h"

#include "penstock/cache/cache.h"

namespace penstock {

int ranks_sharing(const std::string& cache, const RowsUse& use) {
  return cache == "auto" ? use.ranks_here.value_or(1) : 1;
}

HostLimits rank_limits(const std::string& cache, const RowsUse& use) {
  HostLimits host = read_host_limits();
  const auto ranks = static_cast<std::size_t>(ranks_sharing(cache, use));
  if (ranks < 2 || !host.memory_free) return host;
  host.free_origin = "1/" + std::to_string(ranks) + " of " +
                     shown_bytes(*host.memory_free) + ", " + host.free_origin;
  *host.memory_free /= ranks;
  return host;
}

std::string rank_note(const RowsUse& use) {
  if (use.ranks < 2) return {};
  const std::string each =
      "this is the use of each of " + std::to_string(use.ranks) + " ranks";
  if (!use.ranks_here)
    return each +
           "; the number of ranks on this machine is unknown (LOCAL_WORLD_SIZE "
           "is not set)";
  if (*use.ranks_here == 1)
    return each + "; no other rank runs on this machine";
  return each + "; " + std::to_string(*use.ranks_here) +
         " of them run on this machine and share its memory";
}

}  // namespace penstock
