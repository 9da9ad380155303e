#include "penstock/dataset/table/store_of_scan.h"
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

TableDataset::TableDataset(const TableDataset& of, std::unique_ptr<Table> table,
                           Device& device)
    : options_(of.options_),
      source_(of.source_),
      layout_(of.layout_),
      keys_(of.keys_),
      sides_(of.sides_),
      bound_(of.bound_),
      parsing_(of.parsing_),
      fitted_(of.fitted_),
      scan_(of.scan_),
      store_file_(of.store_file_),
      store_(of.store_),
      table_(std::move(table)),
      runs_(of.runs_),
      varying_(of.varying_),
      run_bytes_(of.run_bytes_),
      key_bytes_(of.key_bytes_),
      longest_runs_(of.longest_runs_),
      row_hashes_(of.row_hashes_),
      request_(of.request_),
      damaged_(of.damaged_),
      fingerprint_(of.fingerprint_) {
  PENSTOCK_ASSERT(of.larger_ == nullptr,
                  "what the host finishes is not in a device's memory");
  facts_ = of.facts_;
  std::vector<TierRows> places;
  if (table_ != nullptr)
    places = table_->places();
  else
    places.push_back({Tier::ram, facts_.rows});
  if (const std::int64_t missing =
          of.facts_.rows - of.plan().first_in(Tier::none))
    places.push_back({Tier::none, missing});
  use_plan(moved(of.plan(), std::move(places), request_), device);
}

OffDevice TableDataset::off_device(std::size_t bytes, Device& device) const {
  const TierRows& first = plan().places.front();
  if (first.tier != Tier::device || device.memory_kind() == MemoryKind::cpu)
    return {};
  const std::int64_t back = rows_left(first.rows, bytes, request_);
  const std::size_t there =
      static_cast<std::size_t>(first.rows) * layout_.row_bytes + run_bytes_;
  std::unique_ptr<Table> table;
  if (table_ != nullptr) {
    const Tier next = next_tier(*table_, there);
    table = std::make_unique<Table>(table_->off_device(next, back, device));
  }
  std::shared_ptr<TableDataset> set(
      new TableDataset(*this, std::move(table), device));
  for (std::shared_ptr<RunTable>& runs : set->runs_)
    if (runs != nullptr)
      runs = std::make_shared<RunTable>(runs->on_host(device));
  set->facts_.runs.assign(set->runs_.begin(), set->runs_.end());
  if (back == 0) return {.rows = std::move(set)};
  return {
      .rows = set, .back = [set, back](Device& device) {
        return std::shared_ptr<const Dataset>(new TableDataset(
            *set, std::make_unique<Table>(set->table_->on_device(back, device)),
            device));
      }};
}

}  // namespace penstock
