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
      "this is what each of " + std::to_string(use.ranks) + " ranks takes";
  if (!use.ranks_here)
    return each +
           "; nobody says how many of them share this machine's memory "
           "(LOCAL_WORLD_SIZE)";
  if (*use.ranks_here == 1)
    return each + "; none of the others shares this machine's memory";
  return each + "; " + std::to_string(*use.ranks_here) +
         " of them share this machine's memory";
}

}  // namespace penstock
