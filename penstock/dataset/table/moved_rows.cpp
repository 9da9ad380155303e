#include "penstock/dataset/table/table_dataset.h"

// Rows that a device gives up while batches are made of them. A loader looks at
// one data set as long as it lives, so that moving rows makes another one,
// which shares all that stays: keys, sides, statistics, and the rows in other
// memory.

namespace penstock {
namespace {

/// Where rows of the device go: to host memory, or else where all rows are in a
/// store, to that.
Tier next_tier(const Table& table, std::size_t bytes) {
  const HostLimits host = read_host_limits();
  const bool fits = !host.memory_free ||
                    static_cast<double>(bytes) <=
                        kShareOfFree * static_cast<double>(*host.memory_free);
  if (fits) return Tier::ram;
  if (table.pieces().back().tier == Tier::disk) return Tier::disk;
  throw Error(ErrorKind::out_of_memory,
              {.code = "cache.no_room",
               .what = "cannot move rows from the device to the host",
               .where = "loader.cache",
               .why = "the rows need " + shown_bytes(bytes) +
                      " of host memory, but 80 % of " +
                      shown_bytes(*host.memory_free) + " are free",
               .next = "give the job more memory, or keep fewer rows on the "
                       "device: 'loader.cache.device_gib'"});
}

/// How many of `rows` the device may keep when it gives up `bytes`, some of
/// them to batches that are then copied there in part.
std::int64_t rows_left(std::int64_t rows, std::size_t bytes,
                       const TierRequest& request) {
  if (!request.divisible) return 0;
  bytes = std::min(bytes, static_cast<std::size_t>(rows) * request.row_bytes);
  const std::size_t given = bytes + request.ring_mixed_bytes;
  const auto gone = static_cast<std::int64_t>((given + request.row_bytes - 1) /
                                              request.row_bytes);
  return rows - gone >= request.batch_rows ? rows - gone : 0;
}

}  // namespace

std::shared_ptr<const TableDataset> TableDataset::moved_to(
    PlacedRows placed, const Device& device) const {
  PENSTOCK_ASSERT(larger_ == nullptr,
                  "what the host finishes is not in a device's memory");
  std::vector<TierRows> places;
  if (placed.table != nullptr)
    places = placed.table->places();
  else
    places.push_back({Tier::ram, facts_.rows});
  if (const std::int64_t missing = facts_.rows - plan().first_in(Tier::none))
    places.push_back({Tier::none, missing});
  MeasuredRows measured = measured_;
  measured.finishing_bytes = 0;  // nothing is decoded on the host
  Placement placement = placed_by(
      moved(plan(), std::move(places), placement_.request), placement_.request,
      origin_->options, measured, device.memory_kind());
  return std::shared_ptr<const TableDataset>(new TableDataset(
      origin_, found_, std::move(placed), measured, std::move(placement)));
}

OffDevice TableDataset::off_device(std::size_t bytes, Device& device) const {
  const TierRows& first = plan().places.front();
  if (first.tier != Tier::device || device.memory_kind() == MemoryKind::cpu)
    return {};
  const std::int64_t back = rows_left(first.rows, bytes, placement_.request);
  const std::size_t there =
      static_cast<std::size_t>(first.rows) * layout().row_bytes +
      measured_.run_bytes;
  PlacedRows rows = placed_;
  if (table() != nullptr) {
    const Tier next = next_tier(*table(), there);
    rows.table =
        std::make_shared<Table>(table()->off_device(next, back, device));
  }
  rows.heads.clear();
  for (std::shared_ptr<const RunTable>& runs : rows.runs)
    if (runs != nullptr)
      runs = std::make_shared<const RunTable>(runs->on_host(device));
  const auto set = moved_to(std::move(rows), device);
  if (back == 0) return {.rows = set};
  return {.rows = set, .back = [set, back](Device& device) {
            PlacedRows rows = set->placed_;
            rows.table =
                std::make_shared<Table>(set->table()->on_device(back, device));
            return set->moved_to(std::move(rows), device);
          }};
}

}  // namespace penstock
