#include "penstock/report/compare_runs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "penstock/report/report_facts.h"

namespace penstock {
namespace {

Json known(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

Json summary_of(const Json& report) {
  Json json;
  json["run"] = text_in(report, {"run"});
  for (const char* key : {"au", "samples_per_s", "steps", "samples"})
    json[key] = known(number_in(report, {key}));
  for (const PartName& part : kParts)
    json["parts"][part.key] = known(number_in(report, {"parts", part.key}));
  json["limit"] = text_in(report, {"verdict", "limit"});
  json["cause"] = text_in(report, {"verdict", "cause"});
  return json;
}

/// Settings that decide nothing about how fast a run is.
bool is_name_only(const std::string& key) { return key == "output.dir"; }

Json differing_settings(const Json& first, const Json& second) {
  using Lines = std::vector<std::pair<std::string, std::string>>;
  auto lines = [](const Json& report) {
    const Json* settings = found_in(report, {"settings"});
    return settings == nullptr ? Lines() : flattened(*settings);
  };
  const Lines before = lines(first), after = lines(second);
  const std::map<std::string, std::string> by_key(after.begin(), after.end());
  const std::map<std::string, std::string> earlier(before.begin(),
                                                   before.end());
  Json differ{Json::Array{}};
  auto add = [&](const std::string& key, Json was, Json is) {
    if (is_name_only(key)) return;
    Json entry;
    entry["key"] = key;
    entry["first"] = std::move(was);
    entry["second"] = std::move(is);
    differ.push_back(std::move(entry));
  };
  for (const auto& [key, value] : before) {
    auto found = by_key.find(key);
    if (found == by_key.end())
      add(key, value, {});
    else if (found->second != value)
      add(key, value, found->second);
  }
  for (const auto& [key, value] : after)
    if (!earlier.contains(key)) add(key, {}, value);
  return differ;
}

Json stages_beside(const Json& first, const Json& second) {
  std::vector<std::string> names;
  std::map<std::string, double> rates[2];
  const Json* const reports[] = {&first, &second};
  for (int run = 0; run < 2; ++run)
    for (const ShownStage& stage : shown_stages(*reports[run])) {
      if (!stage.of_pool.empty()) continue;
      if (std::ranges::find(names, stage.name) == names.end())
        names.push_back(stage.name);
      rates[run][stage.name] = *stage.rate;
    }
  Json stages{Json::Array{}};
  auto rate = [&](int run, const std::string& name) {
    auto found = rates[run].find(name);
    return found == rates[run].end() ? Json() : Json(found->second);
  };
  for (const std::string& name : names) {
    Json entry;
    entry["name"] = name;
    entry["first"] = rate(0, name);
    entry["second"] = rate(1, name);
    stages.push_back(std::move(entry));
  }
  return stages;
}

/// The metrics of the last validation of either run, by name.
Json metrics_beside(const Json& first, const Json& second) {
  Json metrics{Json::Array{}};
  std::vector<std::string> names;
  for (const Json* report : {&first, &second}) {
    const Json* found = found_in(*report, {"metrics", "val"});
    if (found == nullptr || !found->is_object()) continue;
    for (const auto& [name, value] : found->object()) {
      if (std::ranges::find(names, name) != names.end()) continue;
      names.push_back(name);
      Json entry;
      entry["name"] = "val_" + name;
      entry["first"] = known(number_in(first, {"metrics", "val", name}));
      entry["second"] = known(number_in(second, {"metrics", "val", name}));
      metrics.push_back(std::move(entry));
    }
  }
  return metrics;
}

/// What the first run's verdict advised first, and what became of it.
Json advice_of(const Json& first, const Json& settings, const Json& gain) {
  const Json::Array& actions = list_in(first, {"verdict", "actions"});
  if (actions.empty()) return {};
  const Json& action = actions.front();
  const std::string knob = text_in(action, {"knob"});
  const Json* from = found_in(action, {"from"});
  const Json* to = found_in(action, {"to"});
  if (knob.empty() || from == nullptr || to == nullptr) return {};
  Json advice;
  advice["knob"] = knob;
  advice["from"] = *from;
  advice["to"] = *to;
  advice["predicted_gain"] = known(number_in(action, {"predicted_gain"}));
  bool followed = false;
  std::int64_t others = 0;
  for (const Json& differs : settings.array()) {
    const bool it = differs.find("key")->string() == knob;
    const std::string wanted = to->is_string() ? to->string() : to->dump();
    if (it && *differs.find("second") == Json(wanted)) followed = true;
    if (!it) ++others;
  }
  advice["followed"] = followed;
  advice["measured_gain"] = followed ? gain : Json();
  advice["other_settings_changed"] = others;
  return advice;
}

}  // namespace

Json compare_runs(const Json& first, const Json& second) {
  Json json;
  json["first"] = summary_of(first);
  json["second"] = summary_of(second);
  auto before = number_in(first, {"samples_per_s"}),
       after = number_in(second, {"samples_per_s"});
  json["gain"] =
      before && after && *before > 0 ? Json(*after / *before - 1) : Json();
  json["metrics"] = metrics_beside(first, second);
  json["settings"] = differing_settings(first, second);
  json["stages"] = stages_beside(first, second);
  json["advice"] = advice_of(first, json["settings"], json["gain"]);
  return json;
}

}  // namespace penstock
