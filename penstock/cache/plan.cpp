#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"

namespace penstock {
namespace {

bool fits(std::size_t needed, std::optional<std::size_t> available) {
  return !available || static_cast<double>(needed) <=
                           kShareOfFree * static_cast<double>(*available);
}

/// One kind of memory: what a tier would take of it.
struct Need {
  std::size_t bytes;
  std::size_t ring;  ///< of these
  std::optional<std::size_t> available;
  const char* where;

  bool met() const { return fits(bytes, available); }
  std::string why_not() const {
    bool ring_alone = !fits(ring, available);
    return (ring_alone ? "the ring of batches alone needs " + shown_bytes(ring)
                       : "needs " + shown_bytes(bytes)) +
           where + ", 80 % of " + shown_bytes(*available) + " are free";
  }
};

/// A tier's needs of the host's and of the device's own memory.
struct Needs {
  Need host, device, disk;
};

Needs needs_of(Tier tier, std::size_t rows_bytes, const TierRequest& request,
               const TierLimits& limits) {
  Need host{0, 0, limits.ram_free, " on the host"};
  Need device{0, 0, limits.device_free, " on the device"};
  Need& ring_here = limits.device_is_host ? host : device;
  ring_here.ring = request.ring_device_bytes;
  if (tier != Tier::device) ring_here.ring += request.ring_staged_bytes;
  if (tier != Tier::device && !limits.device_is_host)
    host.ring = request.ring_host_bytes;
  host.bytes = host.ring;
  device.bytes = device.ring;
  Need disk{0, 0, limits.disk_free, " on the disk"};
  if (request.on_disk) disk.available.reset();
  bool on_device = tier == Tier::device && !limits.device_is_host;
  Need& rows = on_device ? device : tier == Tier::disk ? disk : host;
  rows.bytes += rows_bytes;
  if (tier == Tier::disk) {
    std::size_t blocks = (rows.bytes + request.beside_rows) / kStoreBlock + 1;
    rows.bytes += request.beside_rows + blocks * sizeof(std::uint64_t);
  }
  if (on_device) host.bytes += request.run_bytes;  // until they are all there
  return {host, device, disk};
}

/// How many rows of `row_bytes` fit beside the ring of batches.
std::optional<std::int64_t> most_rows(const Need& need, double row_bytes) {
  if (!need.available || row_bytes <= 0) return std::nullopt;
  double room = kShareOfFree * static_cast<double>(*need.available) -
                static_cast<double>(need.ring);
  return static_cast<std::int64_t>(std::max(0.0, room) / row_bytes);
}

TierPlan::Line line_of(Tier tier, std::size_t rows_bytes,
                       const TierRequest& request, const TierLimits& limits) {
  bool there = request.in_ram && (tier == Tier::ram || limits.device_is_host);
  if (there) rows_bytes = 0;
  auto [host, device, disk] = needs_of(tier, rows_bytes, request, limits);
  TierPlan::Line line{
      .tier = tier,
      .rows_bytes = rows_bytes,
      .host_bytes = host.bytes,
      .device_bytes = device.bytes,
      .disk_bytes = disk.bytes,
      .most_rows =
          most_rows(tier == Tier::device && !limits.device_is_host ? device
                    : tier == Tier::disk                           ? disk
                                                                   : host,
                    request.rows == 0 ? 0
                                      : static_cast<double>(rows_bytes) /
                                            static_cast<double>(request.rows)),
      .fits = host.met() && device.met() && disk.met()};
  if (!device.met())
    line.why = device.why_not();
  else if (!host.met())
    line.why = host.why_not();
  else if (!disk.met())
    line.why = disk.why_not();
  else if (host.bytes > 0 && !limits.ram_free)
    line.why = "assumed to fit: free memory is unknown";
  else
    line.why = "fits";
  if (tier == Tier::device && request.finished_on_host &&
      !limits.device_is_host) {
    line.fits = false;
    line.why = "fields are finished on the host for every batch";
  }
  if (line.fits && there) line.why += ": the arrays are used in place";
  return line;
}

[[noreturn]] void refuse(const TierRequest& request, const TierPlan& plan) {
  std::string why;
  bool rows_are_the_trouble = true;
  for (const TierPlan::Line& line : plan.lines) {
    if (request.tier != "auto" && request.tier != name_of(line.tier)) continue;
    why += (why.empty() ? "" : "; ") + std::string(name_of(line.tier)) + ": " +
           line.why;
    rows_are_the_trouble = !line.why.starts_with("the ring");
  }
  std::string smaller = "a smaller 'loader.batch_size' or 'loader.prefetch'";
  throw Error(
      ErrorKind::out_of_memory,
      {.code = "cache.no_room",
       .what = "cannot keep " + std::to_string(request.rows) + " rows of " +
               std::to_string(request.row_bytes) + " bytes and a ring of " +
               "batches",
       .where = "loader.cache = \"" + request.tier + "\"",
       .why = why,
       .next = !rows_are_the_trouble
                   ? "use " + smaller + ", or give the job more memory"
               : request.tier == "auto" || request.tier == "none"
                   ? "give the job more memory, or use " + smaller
                   : "use \"loader.cache\": \"auto\", or give the job more "
                     "memory"});
}

Json json_of(std::optional<std::size_t> bytes) {
  return bytes ? Json(*bytes) : Json();
}

}  // namespace

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "device";
    case Tier::ram:
      return "ram";
    case Tier::disk:
      return "disk";
    case Tier::none:
      break;
  }
  return "none";
}

TierPlan plan_tiers(const TierRequest& request, const TierLimits& limits) {
  std::size_t rows = static_cast<std::size_t>(request.rows);
  std::size_t table = rows * request.row_bytes + request.run_bytes;
  // Rows that are read again have a hash each, to notice those that changed.
  std::size_t hashes = rows * sizeof(std::uint64_t);
  TierPlan plan;
  plan.limits = limits;
  plan.lines = {line_of(Tier::device, table, request, limits),
                line_of(Tier::ram, table, request, limits)};
  if (limits.disk_free)
    plan.lines.push_back(line_of(Tier::disk, table, request, limits));
  if (!request.in_ram)
    plan.lines.push_back(line_of(Tier::none, hashes, request, limits));
  bool found = false;
  for (TierPlan::Line& line : plan.lines) {
    bool automatic = request.tier == "auto";
    if (automatic && line.tier == Tier::device && limits.device_is_host) {
      line.why = "the device's memory is the host's";
      continue;
    }
    if (!automatic && request.tier != name_of(line.tier)) {
      line.why += ", not requested";
      continue;
    }
    if (found || !line.fits) continue;
    line.chosen = found = true;
    plan.tier = line.tier;
  }
  if (!found) refuse(request, plan);
  return plan;
}

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
  if (scan)
    all +=
        "    initial scan: held " + shown_bytes(scan->bytes) + ", limit " +
        (scan->limit ? shown_bytes(*scan->limit) : "n/a") +
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
  if (scan) {
    json["scan"]["bytes"] = scan->bytes;
    json["scan"]["limit"] = json_of(scan->limit);
    json["scan"]["spilled"] = scan->spilled;
  }
  json["host_free"] = json_of(limits.ram_free);
  json["host_free_from"] = limits.ram_origin;
  json["device_free"] =
      limits.device_is_host ? Json() : Json(limits.device_free);
  return json;
}

}  // namespace penstock
