#include "penstock/dataset/packed/packed_bins.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "penstock/base/shown.h"
#include "penstock/dataset/side_lengths.h"

namespace penstock {
namespace {

BinRules rules_of(const Packing& packing, std::uint64_t seed) {
  return {.size = packing.size,
          .wrapped = packing.how == Packing::How::wrapped,
          .window = packing.window,
          .repack = packing.repack,
          .seed = seed};
}

/// Of Bins or of a BinStream.
template <class Packed>
PackedNumbers numbers_of(const Packed& bins, std::int32_t size) {
  return {.samples = bins.samples(),
          .empty = bins.empty(),
          .cut = bins.cut(),
          .elements = bins.elements(),
          .bins = bins.count(),
          .size = size,
          .efficiency = bins.efficiency()};
}

}  // namespace

std::string PackedNumbers::text() const {
  if (window > 0 && bins == 0)
    return "windows of " + std::to_string(window) +
           " documents, one after the other without end, in rows of " +
           std::to_string(size);
  std::string line = std::to_string(samples) + " documents, " +
                     std::to_string(elements) + " tokens in " +
                     std::to_string(bins) + " rows of " + std::to_string(size) +
                     ": " + shown_percent(efficiency, 2) + " full, " +
                     shown_percent(1 - efficiency, 2) + " padding, " +
                     std::to_string(cut) + " documents cut";
  if (empty > 0) line += ", " + std::to_string(empty) + " without a token";
  return line;
}

Json PackedNumbers::json() const {
  Json json;
  if (window > 0 && bins == 0) {  // nothing of it is known yet
    json["efficiency"] = nullptr;
    json["cut"] = nullptr;
    json["max_length"] = size;
    json["window"] = window;
    return json;
  }
  json["efficiency"] = efficiency;
  json["cut"] = cut;
  json["rows"] = bins;
  json["max_length"] = size;
  json["documents"] = samples;
  json["tokens"] = elements;
  json["empty"] = empty;
  json["padding"] = 1 - efficiency;
  if (window > 0) json["window"] = window;
  return json;
}

PackedBins::PackedBins(std::shared_ptr<const Dataset> rows,
                       const Packing& packing, std::uint64_t seed)
    : rows_(std::move(rows)),
      size_(packing.size),
      window_(packing.how == Packing::How::stream ? packing.window : 0) {
  if (window_ > 0 && rows_->rows_on(Side::train) > 0)
    stream_ = std::make_unique<Streaming>(stream_of(packing, seed));
  else
    bins_[0] = Bins(lengths_on(*rows_, Side::train), rules_of(packing, seed));
  bins_[1] = Bins(lengths_on(*rows_, Side::val), rules_of(packing, seed));
  bins_[2] = Bins(lengths_on(*rows_, Side::test), rules_of(packing, seed));
}

std::int64_t PackedBins::count(Side side) const {
  return side == Side::train && endless() ? kEndless : bins(side).count();
}

std::int64_t PackedBins::first_of(Side side) const {
  if (side == Side::train) return 0;
  const std::int64_t train = count(Side::train);
  return side == Side::val ? train : train + count(Side::val);
}

BinStream PackedBins::stream_of(const Packing& packing,
                                std::uint64_t seed) const {
  return BinStream(rows_->rows_on(Side::train), rules_of(packing, seed),
                   [rows = rows_.get()](std::span<const std::int64_t> ranks,
                                        std::span<std::int32_t> out) {
                     std::vector<SampleId> ids(ranks.begin(), ranks.end());
                     rows->select(Side::train, ids);
                     std::vector<SampleRange> whole;
                     whole.reserve(ids.size());
                     for (SampleId id : ids) whole.push_back({.sample = id});
                     rows->lengths(0, whole, out);
                   });
}

// Where others wait, they wait for the same window.
std::int32_t PackedBins::append(Side side, std::int64_t bin, std::int64_t epoch,
                                std::vector<SampleRange>& to) const {
  if (side != Side::train || stream_ == nullptr)
    return bins(side).append(bin, epoch, to);
  Lock lock(stream_->mutex);
  return stream_->bins.append(bin, to);
}

void PackedBins::expand(Plan& plan) const {
  std::vector<SampleRange> ranges;
  std::vector<std::int64_t> occurrences;
  std::vector<SampleId> ids;
  const std::int64_t val = first_of(Side::val), test = first_of(Side::test);
  ranges.reserve(plan.ranges.size() * 4);
  for (std::size_t row = 0; row < plan.ranges.size(); ++row) {
    const SampleId number = plan.ranges[row].sample;
    const std::size_t first = ranges.size();
    std::int32_t left = size_;
    if (number >= 0) {
      const Side side = number < val    ? Side::train
                        : number < test ? Side::val
                                        : Side::test;
      left = append(side, number - first_of(side), plan.at.epoch, ranges);
      ids.clear();
      for (std::size_t r = first; r < ranges.size(); ++r)
        ids.push_back(ranges[r].sample);
      rows_->select(side, ids);
      for (std::size_t r = first; r < ranges.size(); ++r)
        ranges[r].sample = ids[r - first];
    }
    if (left > 0) ranges.push_back({.sample = -1, .begin = 0, .end = left});
    if (!plan.occurrences.empty())
      occurrences.resize(ranges.size(), plan.occurrences[row]);
    plan.bin_ends[row] = static_cast<std::int32_t>(ranges.size());
  }
  plan.ranges = std::move(ranges);
  plan.occurrences = std::move(occurrences);
}

PackedNumbers PackedBins::numbers(Side side) const {
  if (side != Side::train || stream_ == nullptr)
    return numbers_of(bins(side), size_);
  Lock lock(stream_->mutex);
  PackedNumbers numbers = numbers_of(stream_->bins, size_);
  numbers.window = window_;
  return numbers;
}

}  // namespace penstock
