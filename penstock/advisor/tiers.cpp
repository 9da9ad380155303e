#include "penstock/advisor/advisor.h"
#include "penstock/loader/loader.h"

namespace penstock {

std::vector<TierCapacity> tiers_of(const TierPlan& plan) {
  std::vector<TierCapacity> tiers;
  for (const TierPlan::Line& line : plan.lines) {
    // The device's memory would be the host's again: no faster than `ram`.
    bool same_as_ram =
        line.tier == Tier::device && plan.limits.device_is_host && !line.chosen;
    if (same_as_ram) continue;
    tiers.push_back({.name = std::string(name_of(line.tier)),
                     .fits = line.fits,
                     .in_use = line.chosen,
                     .why = line.why});
  }
  return tiers;
}

}  // namespace penstock
