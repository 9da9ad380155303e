#include "penstock/advisor/advisor.h"
#include "penstock/loader/loader.h"

namespace penstock {

std::string_view name_of(Limit limit) {
  static constexpr std::string_view kNames[] = {"compute", "data", "copy",
                                                "order",   "host", "unknown"};
  return kNames[static_cast<std::size_t>(limit)];
}

Json Verdict::json() const {
  Json json;
  json["limit"] = name_of(limit);
  json["stage"] = stage.empty() ? Json() : Json(stage);
  json["cause"] = cause;
  json["because"] = because;
  json["actions"] = Json::Array{};
  for (const Action& action : actions) {
    Json entry;
    entry["knob"] = action.knob;
    entry["from"] = action.from;
    entry["to"] = action.to;
    entry["predicted_gain"] = action.predicted_gain;
    entry["cost"] = action.cost;
    json["actions"].push_back(std::move(entry));
  }
  json["no_action"] = no_action.empty() ? Json() : Json(no_action);
  return json;
}

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
