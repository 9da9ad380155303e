#include "penstock/dataset/table/placed_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "penstock/dataset/table/row_packing.h"

// Memory decides where rows go, and another program may take it first: then
// they are placed again, before a row is packed.

namespace penstock {
namespace {

std::unique_ptr<Table> table_for(const TierPlan& plan,
                                 const TableOrigin& origin, Device& device,
                                 std::shared_ptr<const Store> store = {}) {
  return std::make_unique<Table>(plan.places, origin.layout.row_bytes, device,
                                 store, store == nullptr ? "" : "rows");
}

void fill(Table& table, const Store::Array& rows, std::size_t row_bytes) {
  std::size_t begin = 0;
  while (const std::int64_t count = table.most_rows()) {
    const std::size_t bytes = static_cast<std::size_t>(count) * row_bytes;
    rows.check(begin, begin + bytes);
    std::memcpy(table.append(count), rows.bytes().data() + begin, bytes);
    begin += bytes;
  }
  table.seal();
}

/// Runs in host memory; of those that a device keeps from here on, what the
/// host sees.
void place_runs(std::vector<std::shared_ptr<RunTable>> runs,
                const TableOrigin& origin, const TierPlan& plan, Device& device,
                PlacedRows& rows) {
  rows.runs.assign(runs.begin(), runs.end());
  if (plan.tier != Tier::device || device.memory_kind() == MemoryKind::cpu)
    return;
  rows.heads.assign(runs.size(), nullptr);
  for (std::size_t f = 0; f < runs.size(); ++f) {
    if (runs[f] == nullptr) continue;
    const StoredForm& form = origin.options.fields[f].kind->facts().stored;
    if (form.head_bytes > 0) {
      auto heads = std::make_shared<RunTable>(form.element_bytes, true);
      for (std::int64_t row = 0; row < runs[f]->rows(); ++row) {
        const std::span<const std::byte> run = runs[f]->row(row);
        heads->append(run.first(form.seen_of(run.size())));
      }
      rows.heads[f] = std::move(heads);
    }
    runs[f]->move_to(device);
  }
}

}  // namespace

PlacedRows rows_in(std::shared_ptr<const Store> store,
                   const TableOrigin& origin) {
  PlacedRows rows{.store = store};
  if (origin.layout.row_bytes > 0)
    rows.table =
        std::make_shared<Table>(store, "rows", origin.layout.row_bytes);
  for (std::size_t f = 0; f < origin.options.fields.size(); ++f) {
    const std::size_t element = origin.element_bytes[f];
    const std::string number = std::to_string(f);
    rows.runs.push_back(element == 0 ? nullptr
                                     : std::make_shared<RunTable>(
                                           element, store, "lengths/" + number,
                                           "runs/" + number));
  }
  return rows;
}

PlacedRows copied_rows(const TableOrigin& origin, PlacedRows rows,
                       Placer& placer, Device& device) {
  if (rows.table != nullptr) {
    std::unique_ptr<Table> table;
    while (table == nullptr) try {
        table = table_for(placer.plan(), origin, device, rows.store);
      } catch (const Error& error) {
        if (!placer.places_again(error)) throw;
        if (placer.plan().places ==
            std::vector<TierRows>{{Tier::disk, placer.measured().rows}})
          return rows;
      }
    fill(*table, rows.store->find("rows"), origin.layout.row_bytes);
    rows.table = std::move(table);
  }
  std::vector<std::shared_ptr<RunTable>> copies;
  for (const std::shared_ptr<const RunTable>& stored : rows.runs) {
    copies.push_back(stored == nullptr ? nullptr
                                       : std::make_shared<RunTable>(
                                             stored->element_bytes(), true));
    if (stored == nullptr) continue;
    for (std::int64_t row = 0; row < stored->rows(); ++row)
      copies.back()->append(stored->row(row));
  }
  place_runs(std::move(copies), origin, placer.plan(), device, rows);
  return rows;
}

PlacedRows packed_rows(const TableOrigin& origin, ScannedTable& scanned,
                       const TableStore& file, Placer& placer, Device& device,
                       const ShareOut& share_out) {
  if (placer.plan().tier == Tier::disk) {
    DamagedRows damaged;
    PlacedRows rows =
        rows_in(write_store(origin, scanned, file, share_out, damaged), origin);
    placer.are_stored();
    rows.damaged = std::move(damaged);
    return placer.plan().places.size() > 1
               ? copied_rows(origin, std::move(rows), placer, device)
               : rows;
  }
  std::unique_ptr<Table> table;
  if (origin.layout.row_bytes > 0 && placer.plan().first_in(Tier::none) > 0)
    try {
      table = table_for(placer.plan(), origin, device);
    } catch (const Error& error) {
      if (!placer.places_again(error)) throw;
      return packed_rows(origin, scanned, file, placer, device, share_out);
    }
  const TierPlan& plan = placer.plan();
  RowPacking packing(origin, scanned, share_out, plan.tier != Tier::none);
  PlacedRows rows{.row_hashes = packing.find_keys(plan.first_in(Tier::none))};
  packing.pack(table.get(), plan);
  rows.table = std::move(table);
  rows.damaged = packing.damaged();
  place_runs(packing.runs(), origin, plan, device, rows);
  return rows;
}

}  // namespace penstock
