#include "penstock/dataset/table/scan_plan.h"

#include <algorithm>

#include "penstock/cache/cache.h"

namespace penstock {
namespace {

/// What a scan takes beside its parsed rows: blocks on their way, the
/// database's cache, memory that the allocator keeps.
constexpr std::size_t kBesidesRows = std::size_t{48} << 20;

ScanLimit limit_of(const AskedScan& asked, const HostLimits& host) {
  ScanLimit limit{.bytes = asked.bytes,
                  .why = "set by 'scan_bytes'",
                  .readers = asked.one_reader ? 1
                             : asked.connections > 0
                                 ? asked.connections
                                 : std::max(1, asked.workers),
                  .expected_rows = asked.expected_rows};
  if (asked.bytes) return limit;
  limit.why = "free memory is unknown";
  if (!host.memory_free) return limit;
  const auto share = static_cast<std::size_t>(
      kShareOfFree * static_cast<double>(*host.memory_free));
  const std::size_t each = asked.reader_bytes;
  const auto fit = share / 2 / std::max<std::size_t>(each, 1);
  if (fit < static_cast<std::size_t>(limit.readers))
    limit.readers = std::max(1, static_cast<int>(fit));
  limit.reader_bytes = std::min(share - share / 4,
                                each * static_cast<std::size_t>(limit.readers));
  const std::size_t rest = share - limit.reader_bytes;
  const std::size_t besides =
      limit.reader_bytes + std::min(kBesidesRows, rest / 2);
  limit.bytes = share - besides;
  limit.why = "80 % of " + shown_bytes(*host.memory_free) + " free (" +
              host.free_origin + "), minus " + shown_bytes(besides);
  if (each > 0)
    limit.why += ", of which " + std::to_string(limit.readers) +
                 (limit.readers == 1 ? " reader takes " : " readers take ") +
                 shown_bytes(limit.reader_bytes);
  return limit;
}

}  // namespace

std::string ScanLimit::text() const {
  return (bytes ? shown_bytes(*bytes) + ": " : "no limit: ") + why;
}

ScanPlan decide_scan(const AskedScan& asked, const HostLimits& host) {
  ScanPlan plan{.limit = limit_of(asked, host)};
  plan.in_parts = asked.resumable && asked.store_usable && asked.by_position &&
                  asked.keeps_values;
  // Rows in the order of their keys come in any order.
  plan.into_store = plan.in_parts && asked.runs_to_disk && !asked.by_key;
  return plan;
}

AskedScan asked_scan(const TableDatasetOptions& options, const Source& source) {
  const Abilities& abilities = source.abilities();
  AskedScan asked{.bytes = options.scan_bytes,
                  .workers = options.workers,
                  .connections = connections_of(options.source),
                  .one_reader = abilities.global_lock,
                  .by_key = abilities.by_key,
                  .by_position = abilities.by_position,
                  .resumable = options.resumable};
  if (const ChunkMap* chunks = source.chunks())
    asked.reader_bytes = chunks->reader.scanning;
  if (options.scanning || options.scanned)
    asked.expected_rows = source.count().rows;
  return asked;
}

}  // namespace penstock
