#include "penstock/advisor/verdict.h"

namespace penstock {

std::string_view name_of(Limit limit) {
  static constexpr std::string_view kNames[] = {
      "compute", "data", "copy", "order", "host", "outside", "unknown"};
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

}  // namespace penstock
