#include "penstock/dataset/mixed/mixed_filler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/base/aligned.h"

namespace penstock {
MixedFiller::MixedFiller(const MixedDataset& dataset, FillMeters& meters,
                         const FillerOptions& options)
    : dataset_(dataset), varying_(dataset.outputs().size()) {
  for (std::size_t s = 0; s < dataset.facts().parts.size(); ++s) {
    FillerOptions own = options;
    own.seed = seed_of_source(options.seed, s);
    own.on_host = true;
    parts_.push_back(
        {.filler = dataset.facts().parts[s].rows->open_filler(meters, own)});
  }
}

void MixedFiller::fill(const FillItem& item, Stream& stream, Faults& faults) {
  share_out(item);
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    const std::size_t rows = parts_[s].rows.size();
    if (rows == item.ids.size())
      fill_in_place(item, s, stream, faults);
    else if (rows > 0)
      fill_aside(item, s, stream, faults);
  }
  clear_padding(item);
  write_sources(item);
  std::ranges::sort(faults.rows, {}, &RowFault::row);
}

void MixedFiller::share_out(const FillItem& item) {
  for (Part& part : parts_) {
    part.rows.clear();
    part.ids.clear();
    part.ranges.clear();
    part.occurrences.clear();
  }
  for (std::size_t row = 0; row < item.ids.size(); ++row) {
    if (item.ids[row] < 0) continue;
    const std::size_t source = dataset_.source_of(item.ids[row]);
    Part& part = parts_[source];
    part.rows.push_back(row);
    part.ids.push_back(dataset_.within(source, item.ids[row]));
    if (!item.ranges.empty()) {
      part.ranges.push_back(item.ranges[row]);
      part.ranges.back().sample = part.ids.back();
    }
    if (!item.occurrences.empty())
      part.occurrences.push_back(item.occurrences[row]);
  }
}

/// Its rows of the item, to go to `places_`.
FillItem MixedFiller::item_of(const FillItem& item, std::size_t source) {
  const Part& part = parts_[source];
  return {.ids = part.ids,
          .to = places_,
          .ranges = part.ranges,
          .occurrences = part.occurrences,
          .at = item.at,
          .read = item.read == nullptr ? nullptr : item.read->part(source)};
}

void MixedFiller::fill_in_place(const FillItem& item, std::size_t source,
                                Stream& stream, Faults& faults) {
  places_.assign(item.to.begin(), item.to.begin() + std::ssize(item.to) - 1);
  parts_[source].filler->fill(item_of(item, source), stream, faults);
}

void MixedFiller::fill_aside(const FillItem& item, std::size_t source,
                             Stream& stream, Faults& faults) {
  const Part& part = parts_[source];
  lay_out(item, part);
  faults_.rows.clear();
  part.filler->fill(item_of(item, source), stream, faults_);
  copy(item, part);
  for (RowFault& fault : faults_.rows) {
    fault.row = static_cast<std::int64_t>(
        part.rows[static_cast<std::size_t>(fault.row)]);
    faults.reject(std::move(fault));
  }
}

/// Gives the part's rows of each tensor a place, one after the other.
void MixedFiller::lay_out(const FillItem& item, const Part& part) {
  const std::size_t outputs = item.to.size() - 1;  // the last is the source
  places_.assign(outputs, {});
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  for (std::size_t o = 0; o < outputs; ++o) {
    const TensorPlace& to = item.to[o];
    Varying& varying = varying_[o];
    std::int64_t elements = std::ssize(part.rows);
    if (!to.starts.empty()) {
      varying = {};
      elements = 0;
      for (std::size_t row : part.rows) {
        varying.starts.push_back(elements);
        varying.lengths.push_back(to.lengths[row]);
        elements += to.lengths[row];
      }
      places_[o].starts = varying.starts;
      places_[o].lengths = varying.lengths;
    }
    places_[o].bytes = to.bytes;
    offsets.push_back(bytes);
    bytes += whole_lines(static_cast<std::size_t>(elements) * to.bytes);
  }
  if (memory_.size() < bytes + kCacheLine) memory_.resize(bytes + kCacheLine);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
  const std::size_t shift = whole_lines(begin) - begin;
  for (std::size_t o = 0; o < outputs; ++o)
    places_[o].data = memory_.data() + shift + offsets[o];
}

void MixedFiller::copy(const FillItem& item, const Part& part) const {
  for (std::size_t o = 0; o < places_.size(); ++o) {
    const TensorPlace &from = places_[o], &to = item.to[o];
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      const std::size_t row = part.rows[i];
      const std::size_t elements =
          from.starts.empty() ? 1 : static_cast<std::size_t>(from.lengths[i]);
      if (elements * to.bytes > 0)
        std::memcpy(to.row(row), from.row(i), elements * to.bytes);
    }
  }
}

void MixedFiller::clear_padding(const FillItem& item) const {
  for (std::size_t row = 0; row < item.ids.size(); ++row) {
    if (item.ids[row] >= 0) continue;
    for (std::size_t o = 0; o + 1 < item.to.size(); ++o)
      if (item.to[o].starts.empty() && item.to[o].bytes > 0)
        std::memset(item.to[o].row(row), 0, item.to[o].bytes);
  }
}

void MixedFiller::write_sources(const FillItem& item) const {
  const TensorPlace& to = item.to.back();
  for (std::size_t row = 0; row < item.ids.size(); ++row) {
    const std::int32_t source =
        item.ids[row] < 0
            ? 0
            : static_cast<std::int32_t>(dataset_.source_of(item.ids[row]));
    std::memcpy(to.row(row), &source, sizeof(source));
  }
}

std::unique_ptr<SlotFiller> MixedDataset::open_filler(
    FillMeters& meters, const FillerOptions& options) const {
  return std::make_unique<MixedFiller>(*this, meters, options);
}

}  // namespace penstock
