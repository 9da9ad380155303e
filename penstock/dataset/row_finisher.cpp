#include "penstock/dataset/row_finisher.h"

#include <algorithm>
#include <cstring>

// A field takes one of three ways into a batch. Without a finisher its stored
// tensors are copied, many rows at once, and its run by the range that is
// wanted. With one, rows are handed to it, all of the call at once, padding and
// rejected ones left out: `at_[r]` is the place of its row r in the item. What
// a device finishes is staged (copied as stored, behind the batch's
// tensors) or read where the device keeps it, and queued for the whole batch;
// the host has inspected the heads of its runs before, because a device rejects
// nothing.
//
// A row that two fields reject is rejected once, by the first of them. One
// thread's; its vectors are scratch memory.

namespace penstock {

RowFinisher::RowFinisher(const std::vector<Field>& fields,
                         const RowLayout& layout, const DatasetFacts& facts,
                         const FillerOptions& options)
    : seed_(options.seed) {
  const std::vector<DeviceField> on_device =
      options.on_host ? std::vector<DeviceField>()
                      : facts.device_fields_of(options.side);
  std::size_t tensor = 0, output = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const FieldKind& kind = *fields[f].kind;
    const StoredForm& stored = kind.facts().stored;
    Part part{
        .field = f,
        .name = fields[f].name,
        .first_output = output,
        .outputs = kind.facts().outputs.size(),
        .offset = stored.tensors.empty() ? 0 : layout.tensors[tensor].offset,
        .run_bytes = stored.element_bytes,
        .finisher = checked_finisher(fields[f], options.side == Side::train)};
    part.pads = part.finisher != nullptr && kind.facts().packing &&
                kind.facts().packing->pads;
    part.heads = stored.head_bytes > 0 || stored.read_by_host;
    if (part.finisher == nullptr)
      for (std::size_t t = 0; t < stored.tensors.size(); ++t)
        copied_.push_back({.output = output + t,
                           .offset = layout.tensors[tensor + t].offset,
                           .bytes = layout.tensors[tensor + t].bytes});
    if (!stored.tensors.empty()) {
      const TensorSpec& last =
          layout.tensors[tensor + stored.tensors.size() - 1];
      part.tensor_bytes = last.offset + last.bytes - part.offset;
    }
    tensor += stored.tensors.size();
    output += part.outputs;
    auto found = std::ranges::find(on_device, f, &DeviceField::field);
    if (found != on_device.end())
      stage(part, *found,
            facts.outputs.size() +
                kStagedPlaces *
                    static_cast<std::size_t>(found - on_device.begin()));
    else if (part.finisher != nullptr || part.run_bytes != 0)
      parts_.push_back(std::move(part));
  }
}

/// Leaves a field to the device. Its stored rows are copied to `place` and the
/// one behind it.
void RowFinisher::stage(Part& part, const DeviceField& field,
                        std::size_t place) {
  if (field.row_bytes > 0)
    copied_.push_back(
        {.output = place, .offset = part.offset, .bytes = field.row_bytes});
  if (field.element_bytes > 0)
    parts_.push_back({.field = part.field,
                      .name = part.name,
                      .first_output = place + 1,
                      .outputs = 1,
                      .offset = part.offset,
                      .run_bytes = part.run_bytes,
                      .finisher = nullptr,
                      .staged = place});
  if (field.row_bytes > 0 || field.element_bytes > 0) {
    part.staged = place;
    part.offset = 0;
  }
  inspects_ = inspects_ || part.heads;
  queued_.push_back(std::move(part));
}

void RowFinisher::copy(const FillItem& item,
                       std::span<const std::byte* const> rows) const {
  for (const Copied& copied : copied_) {
    const TensorPlace& to = item.to[copied.output];
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i] != nullptr)
        std::memcpy(to.row(i), rows[i] + copied.offset, copied.bytes);
      else
        std::memset(to.row(i), 0, copied.bytes);
  }
}

void keep_first_of_each(Faults& faults, std::size_t before) {
  if (faults.rows.size() == before) return;
  std::span found = std::span(faults.rows).subspan(before);
  std::ranges::stable_sort(found, {}, &RowFault::row);
  auto same = [](const RowFault& a, const RowFault& b) {
    return a.row == b.row;
  };
  const auto end = std::unique(found.begin(), found.end(), same);
  faults.rows.resize(before + static_cast<std::size_t>(end - found.begin()));
}

void RowFinisher::finish(const FillItem& item,
                         std::span<const std::byte* const> rows,
                         const RunOf& run_of, Faults& faults,
                         const RunOf& head_of) {
  const std::size_t before = faults.rows.size();
  for (const Part& part : parts_) finish(part, item, rows, run_of, faults);
  for (const Part& part : queued_)
    if (part.heads) inspect(part, item, head_of ? head_of : run_of, faults);
  keep_first_of_each(faults, before);
}

void RowFinisher::find_rows(const Part& part, const FillItem& item,
                            std::span<const std::byte* const> rows,
                            const RunOf& run_of) {
  rows_.clear();
  at_.clear();
  for (std::size_t i = 0; i < item.ids.size(); ++i) {
    const bool padding = item.ids[i] < 0;
    if (padding && !part.pads) continue;
    StoredRow row{
        .tensors = rows.empty() || padding ? nullptr : rows[i] + part.offset,
        .range = item.ranges.empty() ? SampleRange{.sample = item.ids[i]}
                                     : item.ranges[i],
        .occurrence = item.occurrences.empty() ? 0 : item.occurrences[i]};
    if (part.run_bytes != 0 && !padding) row.run = run_of(part.field, i);
    rows_.push_back(row);
    at_.push_back(i);
  }
}

/// Of the rows that were found.
void RowFinisher::find_heads(const Part& part, const RunOf& head_of) {
  if (!part.heads) return;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    rows_[r].head = head_of(part.field, at_[r]);
}

/// What a device is going to finish, since it cannot reject it.
void RowFinisher::inspect(const Part& part, const FillItem& item,
                          const RunOf& head_of, Faults& faults) {
  find_rows(part, item, {}, [](std::size_t, std::size_t) {
    return std::span<const std::byte>();
  });
  find_heads(part, head_of);
  part.finisher->inspect(rows_);
  reject(part, faults);
}

/// Adds what the finisher rejected of the rows that were found.
void RowFinisher::reject(const Part& part, Faults& faults) const {
  check_rejected(part.finisher->rejected(), std::ssize(rows_), part.name);
  for (RowFault fault : part.finisher->rejected()) {
    fault.row =
        static_cast<std::int64_t>(at_[static_cast<std::size_t>(fault.row)]);
    faults.reject(std::move(fault));
  }
}

/// Where the rows that were found go: a kind never sees padding or rejected
/// rows.
void RowFinisher::find_places(const Part& part, const FillItem& item) {
  places_.clear();
  starts_.resize(part.outputs);
  lengths_.resize(part.outputs);
  for (std::size_t o = 0; o < part.outputs; ++o) {
    const TensorPlace& to = item.to[part.first_output + o];
    TensorPlace place{.data = to.data, .bytes = to.bytes};
    if (!to.starts.empty()) {
      starts_[o].clear();
      lengths_[o].clear();
      for (std::size_t at : at_) {
        starts_[o].push_back(to.starts[at]);
        lengths_[o].push_back(to.lengths[at]);
      }
      place.starts = starts_[o];
      place.lengths = lengths_[o];
    } else if (at_.size() != item.ids.size()) {
      starts_[o].assign(at_.begin(), at_.end());
      place.starts = starts_[o];
    }
    places_.push_back(place);
  }
}

void RowFinisher::finish(const Part& part, const FillItem& item,
                         std::span<const std::byte* const> rows,
                         const RunOf& run_of, Faults& faults) {
  find_rows(part, item, rows, run_of);
  if (part.finisher != nullptr) {
    find_places(part, item);
    for (std::size_t o = 0; o < part.outputs; ++o) {
      const TensorPlace& to = item.to[part.first_output + o];
      for (std::size_t i = 0; to.starts.empty() && i < item.ids.size(); ++i)
        if (item.ids[i] < 0) std::memset(to.row(i), 0, to.bytes);
    }
    if (rows_.empty()) return;
    part.finisher->finish(rows_, {.seed = seed_, .epoch = item.at.epoch},
                          places_);
    reject(part, faults);
    return;
  }
  const TensorPlace& to = item.to[part.first_output + part.outputs - 1];
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::size_t begin =
        part.staged > 0 ? 0 : static_cast<std::size_t>(rows_[r].range.begin);
    const std::size_t room =
        static_cast<std::size_t>(to.lengths[at_[r]]) * part.run_bytes;
    const std::size_t left = rows_[r].run.size() - begin * part.run_bytes;
    // Of a run that is staged all is read; behind it may be room for another.
    PENSTOCK_ASSERT(part.staged == 0 || left <= room, "a run has its room");
    const std::size_t bytes = std::min(room, left);
    if (bytes == 0) continue;
    std::memcpy(to.row(at_[r]), rows_[r].run.data() + begin * part.run_bytes,
                bytes);
  }
}

void RowFinisher::queue(const FillItem& batch, std::byte* scratch,
                        Stream& stream, const RunOf& kept) {
  for (const Part& part : queued_) {
    if (part.staged == 0) {
      PENSTOCK_ASSERT(kept, "stored rows are copied, or kept");
      find_rows(part, batch, {}, kept);
      find_heads(part, kept);
      queue(part, batch, scratch, stream);
      continue;
    }
    std::span<const TensorPlace> to = batch.to.subspan(part.staged);
    stored_.clear();
    for (std::size_t i = 0; part.tensor_bytes > 0 && i < batch.ids.size(); ++i)
      stored_.push_back(to[0].row(i));
    const auto runs_in = [](const TensorPlace& place) {
      return [&place](std::size_t, std::size_t i) {
        return std::span<const std::byte>(
            place.row(i),
            static_cast<std::size_t>(place.lengths[i]) * place.bytes);
      };
    };
    find_rows(part, batch, stored_, runs_in(to[1]));
    if (part.heads) {
      PENSTOCK_ASSERT(batch.on_host.size() == batch.to.size(),
                      "who stages heads shows them");
      find_heads(part, runs_in(batch.on_host[part.staged + 1]));
    }
    queue(part, batch, scratch, stream);
  }
}

void RowFinisher::queue(const FillItem& batch,
                        std::span<const std::byte* const> rows,
                        const RunOf& run_of, const RunOf& head_of,
                        std::byte* scratch, Stream& stream) {
  for (const Part& part : queued_) {
    find_rows(part, batch, part.tensor_bytes > 0 ? rows : decltype(rows)(),
              run_of);
    find_heads(part, head_of);
    queue(part, batch, scratch, stream);
  }
}

// A gather of row -1 writes zeros.
void RowFinisher::queue(const Part& part, const FillItem& batch,
                        std::byte* scratch, Stream& stream) {
  find_places(part, batch);
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    if (batch.ids[i] >= 0) continue;
    const std::int64_t none = -1;
    for (std::size_t o = 0; o < part.outputs; ++o) {
      const TensorPlace& to = batch.to[part.first_output + o];
      const GatherField zeros{
          .row_stride = to.bytes, .bytes = to.bytes, .out = to.row(i)};
      stream.run(
          Gather{.fields = std::span(&zeros, 1), .rows = std::span(&none, 1)});
    }
  }
  if (rows_.empty()) return;
  part.finisher->queue({.rows = rows_,
                        .tensor_bytes = part.tensor_bytes,
                        .key = {.seed = seed_, .epoch = batch.at.epoch},
                        .to = places_,
                        .scratch = scratch},
                       stream);
}

}  // namespace penstock
