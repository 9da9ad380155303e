#include <algorithm>
#include <limits>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"

// A pure function from what is to be kept and what is free to a decision. Each
// tier gets a line: what it takes of the host's memory, the device's own and
// the disk, the ring of batches included, since that is there whatever the
// tier. A line fits where all three fit into 80 % of what is free, and its rows
// into their budget. Then the requested tier is taken or refused; for `auto`
// the fastest that fits, or, of rows of equal size, each tier in turn up to
// what it holds. What is unknown (the host's free memory) refuses nothing.
//
// On a device that is the host both of its memories are one, and counted once.

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
  std::optional<std::size_t> budget = {};  ///< of the rows
  const char* setting = "";

  std::size_t rows() const { return bytes - ring; }
  bool there() const { return fits(bytes, available); }
  bool met() const { return there() && (!budget || rows() <= *budget); }
  std::string why_not() const {
    if (budget == 0u) return std::string("left out: '") + setting + "' is 0";
    if (there())
      return "needs " + shown_bytes(rows()) + where + ", '" + setting +
             "' allows " + shown_bytes(*budget);
    bool ring_alone = !fits(ring, available);
    return (ring_alone ? "the ring of batches alone needs " + shown_bytes(ring)
                       : "needs " + shown_bytes(bytes)) +
           where + ", 80 % of " + shown_bytes(*available) + " are free";
  }
};

/// Of all rows, what stands beside them and the hashes of all blocks.
std::size_t store_bytes(const TierRequest& request) {
  std::size_t bytes =
      static_cast<std::size_t>(request.rows) * request.row_bytes +
      request.run_bytes + request.beside_rows;
  return bytes + (bytes / kStoreBlock + 1) * sizeof(std::uint64_t);
}

const char* budget_setting(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "loader.cache.device_gib";
    case Tier::pinned:
      return "loader.cache.pinned_gib";
    case Tier::ram:
      return "loader.cache.ram_gib";
    default:
      return "loader.cache.disk_gib";
  }
}

/// How the rows of a batch come to the device.
enum class Rows { on_device, in_part, copied };

/// What the batches take. On a device that is the host all of it is host
/// memory.
struct Ring {
  std::size_t device, host;
};
Ring ring_of(Rows rows, const TierRequest& request, const TierLimits& limits) {
  const std::size_t device = request.ring_device_bytes;
  if (rows == Rows::on_device) return {device, 0};
  if (rows == Rows::in_part)
    return {device + request.ring_mixed_bytes, request.ring_mixed_host_bytes};
  return {device + request.ring_staged_bytes,
          limits.device_is_host ? 0 : request.ring_host_bytes};
}

/// A tier's needs of the host's and of the device's own memory.
struct Needs {
  Need host, device, disk;
};

Needs needs_of(Tier tier, std::size_t rows_bytes, const TierRequest& request,
               const TierLimits& limits) {
  Need host{0, 0, limits.ram_free, " on the host"};
  Need device{0, 0, limits.device_free, " on the device"};
  const Ring ring =
      ring_of(gathered_on_device(tier) ? Rows::on_device : Rows::copied,
              request, limits);
  host.ring = ring.host + request.finishing_bytes;
  (limits.device_is_host ? host : device).ring += ring.device;
  host.bytes = host.ring;
  device.bytes = device.ring;
  Need disk{0, 0, limits.disk_free, " on the disk"};
  if (request.on_disk) disk.available.reset();
  bool on_device = tier == Tier::device && !limits.device_is_host;
  Need& rows = on_device ? device : tier == Tier::disk ? disk : host;
  rows.bytes += rows_bytes;
  bool stored = tier == Tier::disk && request.on_disk;
  if (tier != Tier::none && !stored) rows.budget = request.budgets.of(tier);
  rows.setting = budget_setting(tier);
  if (tier == Tier::disk) rows.bytes = store_bytes(request);
  if (on_device) host.bytes += request.run_bytes;  // until they are all there
  return {host, device, disk};
}

/// How many rows of `row_bytes` fit beside the ring of batches.
std::optional<std::int64_t> most_rows(const Need& need, double row_bytes) {
  if (!need.available || row_bytes <= 0) return std::nullopt;
  double room = kShareOfFree * static_cast<double>(*need.available) -
                static_cast<double>(need.ring);
  if (need.budget) room = std::min(room, static_cast<double>(*need.budget));
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
  if (!line.fits && host.there() && device.there() && disk.there())
    line.lacks_budget = budget_setting(tier);
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
  if (gathered_on_device(tier) && request.finished_on_host &&
      !limits.device_is_host) {
    line.fits = false;
    line.lacks_budget.clear();
    line.why = "the host finishes fields for every batch";
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

}  // namespace

TierLimits tier_limits(const HostLimits& host, const Device& device) {
  const bool is_host = device.memory_kind() == MemoryKind::cpu;
  return {.ram_free = host.memory_free,
          .ram_origin = host.free_origin,
          // What the host's limits say is not read again.
          .device_free = is_host && host.memory_free ? *host.memory_free
                                                     : device.memory().free,
          .device_is_host = is_host};
}

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "device";
    case Tier::pinned:
      return "pinned";
    case Tier::ram:
      return "ram";
    case Tier::disk:
      return "disk";
    case Tier::none:
      break;
  }
  return "none";
}

const std::optional<std::size_t>& TierBudgets::of(Tier tier) const {
  switch (tier) {
    case Tier::device:
      return device;
    case Tier::pinned:
      return pinned;
    case Tier::ram:
      return ram;
    default:
      return disk;
  }
}

std::size_t TierPlan::device_bytes() const {
  std::size_t bytes = 0;
  for (const Line& line : lines)
    if (line.chosen) bytes += line.device_bytes;
  return bytes;
}

SampleId TierPlan::first_in(Tier of) const {
  SampleId first = 0;
  for (const TierRows& place : places)
    if (place.tier < of) first += place.rows;
  return first;
}

namespace {

constexpr Tier kTiers[] = {Tier::device, Tier::pinned, Tier::ram, Tier::disk,
                           Tier::none};

[[noreturn]] void refuse_budget(Tier tier, std::string what, std::string why) {
  throw Error(
      ErrorKind::request,
      {.code = "cache.budget",
       .what = std::move(what),
       .where = budget_setting(tier),
       .why = std::move(why),
       .next = "raise the budget, or set it to 0 to leave this tier out"});
}

void check_budgets(const TierRequest& request) {
  auto rows = std::min(request.batch_rows, request.rows);
  std::size_t least = static_cast<std::size_t>(rows) * request.row_bytes;
  for (Tier tier : {Tier::device, Tier::pinned, Tier::ram})
    if (const auto& budget = request.budgets.of(tier);
        budget && *budget > 0 && *budget < least)
      refuse_budget(tier, "a budget cannot hold the rows of one batch",
                    "the budget allows " + shown_bytes(*budget) + ", " +
                        std::to_string(rows) + " rows of " +
                        std::to_string(request.row_bytes) + " bytes take " +
                        shown_bytes(least));
}

/// For rows that would have to be read from the source.
void check_disk_budget(const TierRequest& request) {
  const std::optional<std::size_t>& disk = request.budgets.disk;
  if (!request.on_disk && disk && *disk > 0 && *disk < store_bytes(request))
    refuse_budget(Tier::disk, "a budget cannot hold the store",
                  "the budget allows " + shown_bytes(*disk) +
                      ", but a store holds all " +
                      std::to_string(request.rows) + " rows, " +
                      shown_bytes(store_bytes(request)));
}

/// Where there is no such tier.
void check_pinned(const TierRequest& request, const TierLimits& limits) {
  if (request.tier != "pinned") return;
  if (request.divisible && !limits.device_is_host) return;
  throw Error(
      ErrorKind::request,
      {.code = "cache.no_pinned",
       .what = "these rows cannot be kept in pinned memory",
       .where = "loader.cache",
       .why = limits.device_is_host ? "the device reads all host memory"
                                    : "only rows of equal size that are read "
                                      "from a source can be pinned",
       .next = "use \"ram\" or \"auto\""});
}

/// Fills one tier after the other.
class Filling {
 public:
  Filling(const TierRequest& request, const TierLimits& limits)
      : request_(request), limits_(limits), left_(request.rows) {}

  /// `on_device`: as many as fit are gathered there. Empty where the batches
  /// alone do not fit, or no tier may have the rest.
  std::vector<TierRows> places(bool on_device) {
    if (!take_rings(on_device)) return {};
    if (on_device) {
      add(Tier::device, rows_in(device_));
      add(Tier::pinned, or_none(Tier::pinned, rows_in(pinned_room())));
    }
    const bool disk = disk_fits();
    std::int64_t ram = rows_in(within(Tier::ram, host_));
    if (!request_.budgets.ram && disk) ram = or_none(Tier::ram, ram);
    if (ram < left_ && !disk) ram = rows_beside_hashes(ram);
    add(Tier::ram, ram);
    if (disk) add(Tier::disk, left_);
    if (!enough_for_hashes()) return {};
    add(Tier::none, left_);
    return std::move(places_);
  }

 private:
  static constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

  static std::size_t share_of(std::optional<std::size_t> free) {
    return free ? static_cast<std::size_t>(kShareOfFree *
                                           static_cast<double>(*free))
                : kAny;
  }
  std::size_t within(Tier tier, std::size_t room) const {
    const std::optional<std::size_t>& budget = request_.budgets.of(tier);
    return budget ? std::min(room, *budget) : room;
  }

  bool take_rings(bool on_device) {
    auto [device, host] =
        ring_of(on_device ? Rows::in_part : Rows::copied, request_, limits_);
    if (limits_.device_is_host) host = std::exchange(device, 0);
    device_ = share_of(limits_.device_free);
    host_ = share_of(limits_.ram_free);
    host += request_.finishing_bytes;
    if (device > device_ || host > host_) return false;
    device_ = within(Tier::device, device_ - device);
    if (host_ != kAny) host_ -= host;
    return true;
  }

  std::int64_t rows_in(std::size_t room) const {
    return static_cast<std::int64_t>(
        std::min(room / request_.row_bytes, static_cast<std::size_t>(left_)));
  }
  /// Without a budget of its own a tier takes all that is left, or nothing.
  std::int64_t or_none(Tier tier, std::int64_t rows) const {
    return rows == left_ || request_.budgets.of(tier) ? rows : 0;
  }
  /// Of what the system can page out, half stays so.
  std::size_t pinned_room() const {
    if (request_.budgets.pinned) return within(Tier::pinned, host_);
    return limits_.ram_free ? std::min(host_, *limits_.ram_free / 2) : 0;
  }
  bool disk_fits() const {
    if (request_.on_disk || !limits_.disk_free) return request_.on_disk;
    const std::optional<std::size_t>& budget = request_.budgets.disk;
    const std::size_t bytes = store_bytes(request_);
    if (budget && bytes > *budget) return false;
    return bytes <= share_of(limits_.disk_free);
  }
  std::int64_t rows_beside_hashes(std::int64_t most) const {
    constexpr std::size_t kHash = sizeof(std::uint64_t);
    std::size_t hashes = static_cast<std::size_t>(left_) * kHash;
    if (host_ == kAny) return most;
    std::size_t room = host_ > hashes ? host_ - hashes : 0;
    return std::min(most, rows_in(room));
  }
  bool enough_for_hashes() const {
    return static_cast<std::size_t>(left_) * sizeof(std::uint64_t) <= host_;
  }

  void add(Tier tier, std::int64_t rows) {
    if (rows == 0) return;
    places_.push_back({tier, rows});
    left_ -= rows;
    bool on_host = tier == Tier::pinned || tier == Tier::ram;
    if (on_host && host_ != kAny)
      host_ -= static_cast<std::size_t>(rows) * request_.row_bytes;
  }

  const TierRequest& request_;
  const TierLimits& limits_;
  std::int64_t left_;
  std::size_t device_ = 0, host_ = 0;  // room for rows
  std::vector<TierRows> places_;
};

/// Several tiers, where one alone does not hold all rows; else empty.
std::vector<TierRows> divided(const TierRequest& request,
                              const TierLimits& limits) {
  constexpr std::int64_t kLeastShare = 16;  // a sixteenth, to be worth it
  if (!request.divisible || request.row_bytes == 0) return {};
  if (!limits.device_is_host && !request.finished_on_host) {
    std::vector<TierRows> places = Filling(request, limits).places(true);
    std::int64_t there = 0;
    for (const TierRows& place : places)
      if (gathered_on_device(place.tier)) there += place.rows;
    bool asked = request.budgets.device || request.budgets.pinned;
    if (there * kLeastShare >= request.rows || (there > 0 && asked))
      return places;
  }
  return Filling(request, limits).places(false);
}

/// What a tier takes that holds a part of the rows. The batches are counted
/// with the fastest and with the slowest of them.
void describe_part(TierPlan::Line& line, std::int64_t rows,
                   const TierPlan& plan, const TierRequest& request) {
  std::size_t bytes =
      static_cast<std::size_t>(rows) *
      (line.tier == Tier::none ? sizeof(std::uint64_t) : request.row_bytes);
  line.rows_bytes = bytes;
  line.host_bytes = line.device_bytes = 0;
  if (line.tier == Tier::device)
    line.device_bytes = bytes;
  else if (line.tier != Tier::disk)  // its file holds all rows
    line.host_bytes = bytes;
  if (line.tier != Tier::disk) line.disk_bytes = 0;
  const Ring ring = ring_of(gathered_on_device(plan.tier) ? Rows::on_device
                            : plan.mixed()                ? Rows::in_part
                                                          : Rows::copied,
                            request, plan.limits);
  if (line.tier == plan.places.front().tier)
    (plan.limits.device_is_host ? line.host_bytes : line.device_bytes) +=
        ring.device;
  if (line.tier == plan.tier)
    line.host_bytes += ring.host + request.finishing_bytes;
  line.why = "holds " + std::to_string(rows) + " of " +
             std::to_string(request.rows) + " rows";
}

void choose(TierPlan& plan, std::vector<TierRows> places,
            const TierRequest& request) {
  plan.tier = places.back().tier;
  plan.places = std::move(places);
  for (TierPlan::Line& line : plan.lines)
    for (const TierRows& place : plan.places) {
      if (place.tier != line.tier) continue;
      line.chosen = true;
      line.rows = place.rows;
      if (plan.places.size() > 1)
        describe_part(line, place.rows, plan, request);
    }
}

/// Rows that differ in length are read one by one, from a store that is in the
/// page cache as fast as from a copy in memory, which would have to be made
/// first and which no other process shares.
bool mapped_instead(const TierPlan::Line& line, const TierRequest& request) {
  return line.tier == Tier::ram && request.tier == "auto" && request.on_disk &&
         request.row_bytes == 0 && !request.budgets.any();
}

/// What each tier would take of all rows.
std::vector<TierPlan::Line> lines_of(const TierRequest& request,
                                     const TierLimits& limits) {
  std::size_t rows = static_cast<std::size_t>(request.rows);
  std::size_t table = rows * request.row_bytes + request.run_bytes;
  // Rows that are read again have a hash each, to notice those that changed.
  std::size_t hashes = rows * sizeof(std::uint64_t);
  std::vector<TierPlan::Line> lines;
  for (Tier tier : kTiers) {
    if (tier == Tier::pinned && (!request.divisible || limits.device_is_host))
      continue;
    if (tier == Tier::disk && !limits.disk_free) continue;
    if (tier == Tier::none && request.in_ram) continue;
    lines.push_back(
        line_of(tier, tier == Tier::none ? hashes : table, request, limits));
  }
  return lines;
}

}  // namespace

TierPlan moved(const TierPlan& plan, std::vector<TierRows> places,
               const TierRequest& request) {
  TierPlan now = plan;
  now.lines = lines_of(request, plan.limits);
  choose(now, std::move(places), request);
  return now;
}

TierPlan plan_tiers(const TierRequest& request, const TierLimits& limits) {
  check_pinned(request, limits);
  check_budgets(request);
  TierPlan plan{.lines = lines_of(request, limits), .limits = limits};
  std::vector<TierRows> chosen;
  bool automatic = request.tier == "auto";
  for (TierPlan::Line& line : plan.lines) {
    if (automatic && line.tier == Tier::device && limits.device_is_host) {
      line.why = "the device's memory is the host's";
      continue;
    }
    if (!automatic && request.tier != name_of(line.tier)) {
      line.why += ", not requested";
      continue;
    }
    if (!chosen.empty() || !line.fits) continue;
    if (mapped_instead(line, request)) {
      line.why += ": its store is mapped instead";
      continue;
    }
    if (automatic && line.tier != Tier::device)
      chosen = divided(request, limits);
    if (chosen.empty()) chosen = {{line.tier, request.rows}};
  }
  if (automatic && chosen.empty()) chosen = divided(request, limits);
  if (chosen.empty()) refuse(request, plan);
  if (automatic && chosen.back().tier == Tier::none) check_disk_budget(request);
  choose(plan, std::move(chosen), request);
  return plan;
}

}  // namespace penstock
