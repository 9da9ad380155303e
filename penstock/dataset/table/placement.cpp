#include "penstock/dataset/table/placement.h"

#include <algorithm>
#include <utility>

#include "penstock/base/host_limits.h"
#include "penstock/base/shown.h"
#include "penstock/dataset/rank_limits.h"
#include "penstock/dataset/table/larger_form.h"
#include "penstock/dataset/table/table_store.h"

namespace penstock {
namespace {

using DeviceFields = std::array<std::vector<DeviceField>, 2>;

/// What batches are finished of on the device, which is copied there.
DeviceFields copied_there(const TableDatasetOptions& asked,
                          const MeasuredRows& measured, MemoryKind memory,
                          Runs runs) {
  if (asked.batches_on_host) return {};
  DeviceFields fields = device_fields(asked.fields, memory, runs);
  for (const LongestRun& longest : measured.longest)
    for (std::vector<DeviceField>& side : fields)
      for (DeviceField& field : side)
        if (field.field == longest.field && field.element_bytes > 0)
          field.longest_run = longest.elements;
  return fields;
}

/// Where a device keeps the rows that it finishes, nothing is copied there.
DeviceFields kept_there(DeviceFields fields) {
  for (std::vector<DeviceField>& side : fields)
    for (DeviceField& field : side) {
      field.row_bytes = field.element_bytes = 0;
      field.longest_run = 0;
    }
  return fields;
}

/// Where it keeps a part of them, all tensors are made there, of the rows that
/// it keeps and of others that are copied as stored: a run of one row
/// or none.
DeviceFields kept_in_part(DeviceFields fields,
                          const TableDatasetOptions& asked) {
  fields = kept_there(std::move(fields));
  for (std::vector<DeviceField>& side : fields)
    side.push_back({.field = kStoredRows,
                    .outputs = outputs_of(asked.fields).size(),
                    .element_bytes = layout_of(asked.fields).row_bytes,
                    .longest_run = 1});
  return fields;
}

int threads_of(const TableDatasetOptions& asked) {
  return std::max(1, asked.workers);
}

std::size_t finishing_of_all(const TableDatasetOptions& asked,
                             const MeasuredRows& measured) {
  return measured.finishing_bytes * static_cast<std::size_t>(threads_of(asked));
}

/// What a store holds beside the rows: keys, sides, lengths, and, of a run that
/// a device keeps, what of it the host sees, and how long that is.
std::size_t bytes_beside(const TableDatasetOptions& asked,
                         const MeasuredRows& measured) {
  std::size_t each =
      sizeof(std::uint8_t) + sizeof(std::int32_t) * measured.longest.size();
  for (const Field& field : asked.fields)
    if (const std::size_t head = field.kind->facts().stored.head_bytes)
      each += head + sizeof(std::int32_t);
  return measured.key_bytes + static_cast<std::size_t>(measured.rows) * each;
}

TierRequest request_of(const TableDatasetOptions& asked,
                       const MeasuredRows& measured, const Room& room) {
  const std::size_t row_bytes = layout_of(asked.fields).row_bytes;
  const bool on_device = finished_on_device(
      asked.fields, copied_there(asked, measured, room.memory, Runs::kept));
  return {.rows = measured.rows,
          .row_bytes = row_bytes,
          .run_bytes = measured.run_bytes,
          .finished_on_host = asked.batches_on_host || !on_device,
          .ring_device_bytes = room.kept.device,
          .ring_staged_bytes = room.copied.device - room.kept.device,
          .ring_host_bytes = room.copied.host,
          .ring_mixed_bytes = room.mixed.device - room.kept.device,
          .ring_mixed_host_bytes = room.mixed.host,
          .finishing_bytes = finishing_of_all(asked, measured),
          .tier = measured.by_position() ? "none" : asked.cache,
          .budgets = asked.budgets,
          .divisible = measured.longest.empty() && row_bytes > 0,
          .batch_rows = asked.batch_rows,
          .on_disk = measured.in_store,
          .beside_rows = bytes_beside(asked, measured)};
}

/// The fields of which the larger form is kept. Of rows that are read by
/// position, also those that have no other form.
std::string shown_larger(const std::vector<Field>& fields, bool by_position) {
  std::vector<std::string> shown;
  for (const Field& field : fields)
    if (const auto form = larger_form(field); form && form->same_bytes)
      shown.push_back(form->shown());
    else if (by_position && field.kind->facts().is_larger)
      shown.push_back("field '" + field.name + "'");
  return listed(shown);
}

/// Which rows are kept in the larger form of their fields, too.
void place_larger(const TableDatasetOptions& asked,
                  const MeasuredRows& measured, Placement& placed) {
  const bool varies = std::ranges::any_of(
      outputs_of(asked.fields),
      [](const Output& output) { return output.lengths != Lengths::equal; });
  TierPlan& plan = placed.plan;
  if (measured.larger_bytes == 0 || asked.cache != "auto" ||
      asked.budgets.any() || varies ||
      (plan.tier == Tier::none && !measured.by_position()))
    return;
  const auto line =
      std::ranges::find(plan.lines, plan.tier, &TierPlan::Line::tier);
  // Those of a mapped file are read from it whenever they are not kept.
  const std::size_t mapped = plan.tier == Tier::disk ? measured.run_bytes : 0;
  placed.larger =
      plan_larger({.shown = shown_larger(asked.fields, measured.by_position()),
                   .rows = measured.rows,
                   .bytes = measured.larger_bytes,
                   .others = line->host_bytes,
                   .read_again = measured.read_bytes.value_or(mapped),
                   .sharing = ranks_sharing(asked.cache, asked)},
                  asked, plan.limits);
  if (!placed.larger.note.empty()) plan.notes.push_back(placed.larger.note);
  line->host_bytes += placed.larger.bytes;
}

/// What is free, on a disk too where the rows may go there.
TierLimits limits_for(const TableDatasetOptions& asked, bool in_store,
                      const Device& device, std::size_t replaced) {
  const HostLimits host = rank_limits(asked.cache, asked);
  TierLimits limits = tier_limits(host, device);
  const std::filesystem::path folder = store_dir(asked);
  limits.disk_origin = folder.string();
  const std::optional<std::size_t>& budget = asked.budgets.disk;
  const bool automatic =
      asked.cache == "auto" &&
      (budget ? *budget > 0 : why_not_a_disk(folder).empty());
  if (!in_store && asked.cache != "disk" && !automatic) return limits;
  std::size_t free = free_bytes(folder).value_or(0);
  if (!in_store) free += replaced;
  // A store is mapped.
  limits.disk_free = std::min(free, host.addresses_free.value_or(free));
  return limits;
}

}  // namespace

Placement placed_by(TierPlan plan, const TierRequest& request,
                    const TableDatasetOptions& asked,
                    const MeasuredRows& measured, MemoryKind memory) {
  const Runs runs = plan.tier != Tier::none  ? Runs::kept
                    : measured.by_position() ? Runs::unknown
                                             : Runs::measured;
  Placement placed{
      .request = request,
      .plan = std::move(plan),
      .device_fields = copied_there(asked, measured, memory, runs)};
  std::vector<std::string>& notes = placed.plan.notes;
  notes = finish_notes(asked.fields, placed.device_fields,
                       asked.batches_on_host ? MemoryKind::cpu : memory, runs);
  if (std::string note = rank_note(asked); !note.empty())
    notes.push_back(std::move(note));
  if (measured.finishing_bytes > 0)
    notes.push_back(
        finishing_note(finishing_of_all(asked, measured), threads_of(asked)));
  if (gathered_on_device(placed.plan.tier))
    placed.device_fields = kept_there(std::move(placed.device_fields));
  if (placed.plan.mixed())
    placed.device_fields = kept_in_part(std::move(placed.device_fields), asked);
  return placed;
}

Placement place(const TableDatasetOptions& asked, const MeasuredRows& measured,
                const Room& room) {
  const TierRequest request = request_of(asked, measured, room);
  TierPlan plan = plan_tiers(request, room.limits);
  plan.scan = measured.scan;
  Placement placed =
      placed_by(std::move(plan), request, asked, measured, room.memory);
  place_larger(asked, measured, placed);
  return placed;
}

std::vector<std::int32_t> longest_samples(const std::vector<Field>& fields,
                                          const std::vector<LongestRun>& runs) {
  std::vector<std::int32_t> all;
  for (const LongestRun& longest : runs) {
    const FieldFacts& facts = fields[longest.field].kind->facts();
    // A bin holds no more, however long the longest sample is.
    for (const Output& output : facts.outputs)
      if (output.own_lengths())
        all.push_back(facts.packing ? facts.packing->size : longest.elements);
  }
  return all;
}

Placer::Placer(TableDatasetOptions asked, MeasuredRows measured,
               const Device& device, std::filesystem::path store,
               std::size_t begun)
    : asked_(std::move(asked)),
      measured_(std::move(measured)),
      device_(device),
      store_(std::move(store)),
      begun_(begun) {
  place();
}

void Placer::place() {
  // A store that cannot be used makes room for the new one.
  std::error_code none;
  const auto unusable = std::filesystem::file_size(store_, none);
  const std::size_t replaced =
      begun_ + (none ? 0 : static_cast<std::size_t>(unusable));
  placement_ = penstock::place(asked_, measured_,
                               room_for(asked_, measured_, device_, replaced));
  if (asked_.planned) asked_.planned(placement_.plan);
}

bool Placer::places_again(const Error& error) {
  if (error.kind() != ErrorKind::out_of_memory || asked_.cache != "auto" ||
      left_-- == 0)
    return false;
  log(LogLevel::warning,
      std::string("the place of the rows is planned again: ") + error.what());
  place();
  return true;
}

Room room_for(const TableDatasetOptions& asked, const MeasuredRows& measured,
              const Device& device, std::size_t replaced) {
  Room room{.limits = limits_for(asked, measured.in_store, device, replaced),
            .memory = device.memory_kind()};
  if (!asked.ring_bytes) return room;
  DatasetFacts facts{
      .rows = measured.rows,
      .on_side = measured.on_side,
      .outputs = outputs_of(asked.fields),
      .longest = longest_samples(asked.fields, measured.longest)};
  const DeviceFields copied =
      copied_there(asked, measured, room.memory, Runs::kept);
  auto rings = [&](DeviceFields fields) {
    facts.device_fields = std::move(fields);
    return asked.ring_bytes(facts);
  };
  room.copied = rings(copied);
  room.kept = rings(kept_there(copied));
  room.mixed = rings(kept_in_part(copied, asked));
  return room;
}

}  // namespace penstock
