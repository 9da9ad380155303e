#include "penstock/session/step_memory.h"

#include "penstock/base/log.h"

namespace penstock {

Json json_of(const std::vector<OomEvent>& events) {
  Json list(Json::Array{});
  for (const OomEvent& event : events) {
    Json entry;
    entry["step"] = event.step;
    entry["from"] = event.from;
    entry["to"] = event.to;
    entry["action"] = event.action;
    entry["exact"] = event.exact;
    list.push_back(std::move(entry));
  }
  return list;
}

OomEvent parse_oom_event(const Json& json) {
  return {.step = json.find("step")->integer(),
          .from = json.find("from")->integer(),
          .to = json.find("to")->integer(),
          .action = json.find("action")->string(),
          .exact = *json.find("exact") == Json(true)};
}

void StepMemory::add(OomEvent event) {
  std::string line = "step " + std::to_string(event.step) +
                     " ran out of memory: " + event.action;
  if (event.from != event.to)
    line += ", from " + std::to_string(event.from) + " to " +
            std::to_string(event.to) + " rows at once";
  if (!event.exact) line += "; batch normalization sees fewer rows";
  log(LogLevel::warning, line);
  events_.push_back(std::move(event));
}

}  // namespace penstock
