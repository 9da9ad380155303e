#include <cstdio>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"

namespace penstock {
namespace {

// The rest is for what we cannot foresee: the model, the libraries, others.
constexpr double kShare = 0.8;

bool fits(std::size_t needed, std::size_t available) {
  return static_cast<double>(needed) <= kShare * static_cast<double>(available);
}

}  // namespace

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "device";
    case Tier::ram:
      return "ram";
    case Tier::none:
      break;
  }
  return "none";
}

std::string shown_bytes(std::size_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[40];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value,
                kUnits[unit]);
  return text;
}

TierPlan plan_tiers(const TierRequest& request, const TierLimits& limits) {
  std::size_t rows = static_cast<std::size_t>(request.rows);
  std::size_t table = rows * request.row_bytes;
  // Reading anew keeps a hash per row, to notice rows that changed.
  TierPlan plan;
  plan.lines = {
      {Tier::device, table + request.slot_bytes,
       limits.device_is_host ? limits.ram_free : limits.device_free, false, ""},
      {Tier::ram, table, limits.ram_free, false, ""},
      {Tier::none, rows * sizeof(std::uint64_t), limits.ram_free, false, ""}};
  bool found = false;
  for (TierPlan::Line& line : plan.lines) {
    bool wished = request.wish == "auto" || request.wish == name_of(line.tier);
    bool room = fits(line.needed, line.available);
    line.why = room ? "fits"
                    : "needs " + shown_bytes(line.needed) + ", 80 % of " +
                          shown_bytes(line.available) + " are there";
    if (line.tier == Tier::device && limits.device_is_host &&
        request.wish == "auto") {
      line.why = "the device's memory is the host's";
      continue;
    }
    if (!wished) line.why = "not asked for";
    if (found || !wished || !room) continue;
    line.chosen = found = true;
    plan.tier = line.tier;
  }
  if (!found) {
    std::string why;
    for (const TierPlan::Line& line : plan.lines)
      if (request.wish == "auto" || request.wish == name_of(line.tier))
        why += (why.empty() ? "" : "; ") + std::string(name_of(line.tier)) +
               " " + line.why;
    throw Error(
        ErrorKind::out_of_memory,
        {.code = "cache.no_room",
         .what = "cannot keep " + std::to_string(request.rows) + " rows of " +
                 std::to_string(request.row_bytes) + " bytes",
         .where = "loader.cache = \"" + request.wish + "\"",
         .why = why,
         .next = "use \"loader.cache\": \"auto\", or give the job "
                 "more memory"});
  }
  return plan;
}

std::string TierPlan::text() const {
  std::string all;
  for (const Line& line : lines)
    all += std::string(line.chosen ? "  * " : "    ") +
           std::string(name_of(line.tier)) + ": " + shown_bytes(line.needed) +
           " of " + shown_bytes(line.available) + " free, " + line.why + "\n";
  return all;
}

Json TierPlan::json() const {
  Json json;
  json["tier"] = name_of(tier);
  for (const Line& line : lines) {
    Json entry;
    entry["tier"] = name_of(line.tier);
    entry["bytes"] = line.needed;
    entry["free"] = line.available;
    entry["chosen"] = line.chosen;
    entry["why"] = line.why;
    json["tiers"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace penstock
