#include "penstock/session/step_memory.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "penstock/base/base.h"
#include "penstock/base/log.h"

namespace penstock {
namespace {

constexpr std::string_view kActions[] = {
    "rows_to_host",           "look_ahead",
    "allocator_cache",        "micro_batch",
    "gradient_checkpointing", "validation_rows"};

}  // namespace

std::string_view name_of(OomAction action) {
  return kActions[static_cast<std::size_t>(action)];
}

OomAction oom_action_named(std::string_view name) {
  const auto* const found = std::ranges::find(kActions, name);
  PENSTOCK_ASSERT(found != std::end(kActions), "an action after a shortage");
  return static_cast<OomAction>(found - std::begin(kActions));
}

Json json_of(const std::vector<OomEvent>& events) {
  Json list(Json::Array{});
  for (const OomEvent& event : events) {
    Json entry;
    entry["step"] = event.step;
    entry["from"] = event.from;
    entry["to"] = event.to;
    entry["action"] = std::string(name_of(event.action));
    entry["exact"] = event.exact;
    list.push_back(std::move(entry));
  }
  return list;
}

OomEvent parse_oom_event(const Json& json) {
  return {.step = json.find("step")->integer(),
          .from = json.find("from")->integer(),
          .to = json.find("to")->integer(),
          .action = oom_action_named(json.find("action")->string()),
          .exact = *json.find("exact") == Json(true)};
}

void StepMemory::add(const OomEvent& event) {
  std::string line =
      "step " + std::to_string(event.step) +
      " ran out of memory: " + std::string(name_of(event.action));
  if (event.from != event.to)
    line += ", from " + std::to_string(event.from) + " to " +
            std::to_string(event.to) + " rows at once";
  if (!event.exact) line += "; batch normalization sees fewer rows";
  log(LogLevel::warning, line);
  events_.push_back(event);
}

}  // namespace penstock
