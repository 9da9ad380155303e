#include "penstock/cache/cache.h"

namespace penstock {
namespace {

Json json_of(std::optional<std::size_t> bytes) {
  return bytes ? Json(*bytes) : Json();
}

}  // namespace

std::string TierPlan::text() const {
  std::string all;
  for (const Line& line : lines) {
    all += std::string(line.chosen ? "  * " : "    ") +
           std::string(name_of(line.tier)) + ": ";
    if (line.device_bytes > 0)
      all += shown_bytes(line.device_bytes) + " on the device" +
             (line.host_bytes > 0 || line.disk_bytes > 0 ? " and " : "");
    if (line.disk_bytes > 0)
      all += shown_bytes(line.disk_bytes) + " on the disk" +
             (line.host_bytes > 0 ? " and " : "");
    if (line.host_bytes > 0 || line.bytes() == 0)
      all += shown_bytes(line.host_bytes) + " on the host";
    all += ", " + line.why;
    if (line.most_rows)
      all += " (room for " + std::to_string(*line.most_rows) + " such rows)";
    all += "\n";
  }
  if (predicted_from > 0)
    all += "    sizes are estimated from " + std::to_string(predicted_from) +
           " rows\n";
  for (const std::string& note : notes) all += "    " + note + "\n";
  if (scan)
    all +=
        "    initial scan: held " + shown_bytes(scan->bytes) + ", limit " +
        (scan->limit ? shown_bytes(*scan->limit) : "n/a") +
        (scan->readers == 0 ? ""
                            : "; its readers " + shown_bytes(scan->readers)) +
        (scan->spilled == 0 ? ""
                            : "; the values of " + shown_bytes(scan->spilled) +
                                  " went to temporary files") +
        "\n";
  all +=
      "    free: " + (limits.ram_free ? shown_bytes(*limits.ram_free) : "n/a") +
      " on the host";
  if (!limits.ram_origin.empty()) all += " (" + limits.ram_origin + ")";
  if (!limits.device_is_host)
    all += ", " + shown_bytes(limits.device_free) + " on the device";
  if (limits.disk_free)
    all += ", " + shown_bytes(*limits.disk_free) + " in " + limits.disk_origin;
  return all + "\n";
}

Json TierPlan::json() const {
  Json json;
  json["tier"] = name_of(tier);
  for (const Line& line : lines) {
    bool own = line.tier == Tier::device && !limits.device_is_host;
    Json entry;
    entry["tier"] = name_of(line.tier);
    entry["bytes"] = line.bytes();
    entry["rows_bytes"] = line.rows_bytes;
    entry["host_bytes"] = line.host_bytes;
    entry["device_bytes"] = line.device_bytes;
    entry["disk_bytes"] = line.disk_bytes;
    entry["free"] = own                       ? Json(limits.device_free)
                    : line.tier == Tier::disk ? json_of(limits.disk_free)
                                              : json_of(limits.ram_free);
    entry["most_rows"] = line.most_rows ? Json(*line.most_rows) : Json();
    entry["fits"] = line.fits;
    entry["chosen"] = line.chosen;
    entry["why"] = line.why;
    json["tiers"].push_back(std::move(entry));
  }
  if (predicted_from > 0) json["predicted_from"] = predicted_from;
  for (const std::string& note : notes) json["notes"].push_back(note);
  if (scan) {
    json["scan"]["bytes"] = scan->bytes;
    json["scan"]["limit"] = json_of(scan->limit);
    json["scan"]["spilled"] = scan->spilled;
    json["scan"]["readers"] = scan->readers;
  }
  json["host_free"] = json_of(limits.ram_free);
  json["host_free_from"] = limits.ram_origin;
  json["device_free"] =
      limits.device_is_host ? Json() : Json(limits.device_free);
  return json;
}

}  // namespace penstock
