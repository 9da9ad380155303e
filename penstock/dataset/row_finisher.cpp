#include "penstock/dataset/row_finisher.h"

#include <algorithm>
#include <cstring>

namespace penstock {

bool only_copied(const std::vector<Field>& fields) {
  return std::ranges::all_of(fields, [](const Field& field) {
    return field.kind->stored().element_bytes == 0 &&
           field.kind->finisher(true) == nullptr &&
           field.kind->finisher(false) == nullptr;
  });
}

RowFinisher::RowFinisher(const std::vector<Field>& fields,
                         const RowLayout& layout, const FillerOptions& options)
    : seed_(options.seed) {
  std::size_t tensor = 0, output = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const FieldKind& kind = *fields[f].kind;
    StoredForm stored = kind.stored();
    Part part{
        .field = f,
        .first_output = output,
        .outputs = kind.outputs().size(),
        .offset = stored.tensors.empty() ? 0 : layout.tensors[tensor].offset,
        .run_bytes = stored.element_bytes,
        .finisher = kind.finisher(options.side == Side::train)};
    if (part.finisher == nullptr)
      for (std::size_t t = 0; t < stored.tensors.size(); ++t)
        copied_.push_back({.output = output + t,
                           .offset = layout.tensors[tensor + t].offset,
                           .bytes = layout.tensors[tensor + t].bytes});
    tensor += stored.tensors.size();
    output += part.outputs;
    if (part.finisher != nullptr || part.run_bytes != 0)
      parts_.push_back(std::move(part));
  }
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

void RowFinisher::finish(const FillItem& item,
                         std::span<const std::byte* const> rows,
                         const RunOf& run_of) {
  for (const Part& part : parts_) finish(part, item, rows, run_of);
}

void RowFinisher::finish(const Part& part, const FillItem& item,
                         std::span<const std::byte* const> rows,
                         const RunOf& run_of) {
  rows_.clear();
  at_.clear();
  for (std::size_t i = 0; i < item.ids.size(); ++i) {
    if (item.ids[i] < 0) continue;
    StoredRow row{
        .tensors = rows.empty() ? nullptr : rows[i] + part.offset,
        .range = item.ranges.empty() ? SampleRange{.sample = item.ids[i]}
                                     : item.ranges[i],
        .occurrence = item.occurrences.empty() ? 0 : item.occurrences[i]};
    if (part.run_bytes != 0) row.run = run_of(part.field, i);
    rows_.push_back(row);
    at_.push_back(i);
  }
  if (part.finisher != nullptr) return call(part, item);
  const TensorPlace& to = item.to[part.first_output + part.outputs - 1];
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    auto begin = static_cast<std::size_t>(rows_[r].range.begin);
    auto count = static_cast<std::size_t>(to.lengths[at_[r]]);
    if (count == 0) continue;
    std::memcpy(to.row(at_[r]), rows_[r].run.data() + begin * part.run_bytes,
                count * part.run_bytes);
  }
}

// A kind never sees padding or rejected rows: they are zeros.
void RowFinisher::call(const Part& part, const FillItem& item) {
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
      for (std::size_t i = 0; i < item.ids.size(); ++i)
        if (item.ids[i] < 0) std::memset(to.row(i), 0, to.bytes);
    }
    places_.push_back(place);
  }
  if (rows_.empty()) return;
  part.finisher->finish(rows_, {.seed = seed_, .epoch = item.at.epoch},
                        places_);
}

}  // namespace penstock
